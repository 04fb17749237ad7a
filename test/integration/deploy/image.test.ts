/** Follows the Dockerfile by hand, each stage in a folder: what it copies and runs must add up to an app that starts. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { removeFolder, temporaryFolder } from '../../../scripts/kafka/keeper.ts'
import { run } from '../../../scripts/setup/run.ts'
import { root } from './tools.ts'

interface Stage {
  readonly name: string
  readonly folder: string
  env: Record<string, string>
}

/** Instructions of a Dockerfile, continued lines joined, comments left out. */
function instructions(text: string): [name: string, rest: string][] {
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n\s*/g, '')
    .split('\n')
  return lines
    .filter((line) => line !== '')
    .map((line) => [line.split(' ')[0] ?? '', line.slice(line.indexOf(' ') + 1)])
}

/** Takes files from the context or another stage into /app of this one, as COPY does. */
function copy(rest: string, stage: Stage, stages: readonly Stage[]): void {
  const words = rest.split(/\s+/)
  const from = /^--from=(.+)$/.exec(words[0] ?? '')?.[1]
  const source = stages.find(({ name }) => name === from)
  if (from !== undefined) words.shift()
  const target = words.pop() ?? ''
  for (const word of words) {
    const path = source ? join(source.folder, word.replace(/^\/app\//, '')) : join(root, word)
    assert.ok(existsSync(path), `COPY ${rest}: ${path} is missing`)
    const into = target === './' ? join(stage.folder, basename(word)) : join(stage.folder, target)
    cpSync(path, into, { recursive: true, verbatimSymlinks: true })
  }
}

test('the Dockerfile builds an app that starts', { timeout: 600_000 }, async (t) => {
  const stages: Stage[] = []
  let stage: Stage | undefined
  let entry: string[] = []
  for (const [name, rest] of instructions(readFileSync(join(root, 'Dockerfile'), 'utf8'))) {
    if (name === 'FROM') {
      const folder = temporaryFolder('image')
      t.after(() => removeFolder(folder))
      stage = { name: / AS (\w+)/.exec(rest)?.[1] ?? '', folder, env: {} }
      stages.push(stage)
    }
    assert.ok(stage)
    if (name === 'WORKDIR') assert.equal(rest, '/app')
    if (name === 'COPY') copy(rest, stage, stages)
    if (name === 'RUN')
      await run('sh', ['-ec', rest], { cwd: stage.folder, env: { npm_config_prefer_offline: 'true' } })
    if (name === 'ENV')
      for (const pair of rest.split(/\s+/)) stage.env[pair.split('=')[0] ?? ''] = pair.split('=')[1] ?? ''
    if (name === 'ENTRYPOINT') entry = JSON.parse(rest) as string[]
  }
  const image = stage
  assert.ok(image)
  assert.equal(stages.length, 2)
  const args = entry.slice(1).map((word) => word.replace('/app', image.folder))
  mkdirSync(join(image.folder, 'elsewhere'))
  const options = { cwd: join(image.folder, 'elsewhere'), env: { ...image.env, UPSTREAM_BOOTSTRAP: 'kafka:9092' } }
  assert.match(await run(process.execPath, [...args, 'version'], options), /^headgate \d/)
  assert.match(await run(process.execPath, [...args, 'check'], options), /listen 0\.0\.0\.0:19092/)
  for (const unwanted of ['typescript', 'eslint', 'tsx'])
    assert.ok(!existsSync(join(image.folder, 'node_modules', unwanted)), unwanted)
  assert.ok(!existsSync(join(image.folder, 'src')))
})
