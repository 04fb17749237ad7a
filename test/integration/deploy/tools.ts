/** Tools that validate the examples: found, or installed into the cache, or named with the line that installs them. */
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { cached } from '../../../scripts/setup/cache.ts'
import { run, versionOf } from '../../../scripts/setup/run.ts'

export const root = join(import.meta.dirname, '../../..')

/** What a test needs is missing: counted as skipped, and with CI=true as failed. Always returns undefined. */
export function missing(t: TestContext, what: string, install: string): undefined {
  const message = `${what} is missing; needs: ${install}`
  if (process.env['CI'] === 'true') throw new Error(message)
  t.skip(message)
  return undefined
}

const kubernetesValidate = '1.37.0'

/** Path of kubernetes-validate, which carries the schemas of Kubernetes; in a virtual environment of its own. */
export async function findKubernetesValidate(t: TestContext): Promise<string | undefined> {
  if (versionOf('python3', ['-c', 'import venv, ensurepip']) === undefined) {
    return missing(t, 'Python 3 with venv', 'apt-get install python3-venv')
  }
  const folder = await cached({
    name: 'kubernetes-validate',
    key: `${kubernetesValidate} ${versionOf('python3', ['--version'])}`,
    build: async (target) => {
      await run('python3', ['-m', 'venv', target])
      await run(join(target, 'bin/pip'), ['install', '--no-input', '-q', `kubernetes-validate==${kubernetesValidate}`])
    },
  })
  return join(folder, 'bin/kubernetes-validate')
}

export function findPromtool(t: TestContext): string | undefined {
  return versionOf('promtool', ['--version']) === undefined
    ? missing(t, 'promtool', 'apt-get install prometheus')
    : 'promtool'
}
