/** Finds Java and Maven. */
import { join } from 'node:path'
import { versionOf } from '../setup/run.ts'

const oldestJava = 17

/** The java command (`$JAVA_HOME` first, then the path) if it is Java 17 or newer. */
export function findJava(): string | undefined {
  return findInJavaHome('java', ['-version'], /version "(\d+)/)
}

/** The javac command if it is from Java 17 or newer. */
export function findJavac(): string | undefined {
  return findInJavaHome('javac', ['-version'], /javac (\d+)/)
}

/** The mvn command, if there is one. */
export function findMaven(): string | undefined {
  return versionOf('mvn', ['-v']) === undefined ? undefined : 'mvn'
}

function findInJavaHome(name: string, args: readonly string[], pattern: RegExp): string | undefined {
  const home = process.env['JAVA_HOME']
  return [...(home === undefined ? [] : [join(home, 'bin', name)]), name].find((command) => {
    const major = Number(pattern.exec(versionOf(command, args) ?? '')?.[1])
    return major >= oldestJava
  })
}
