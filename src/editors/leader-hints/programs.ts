/** What to skip in the answers to Fetch and Produce, per version, up to the tagged fields at their end. */
import { apiKeys } from '../../protocol/api-table.ts'
import { compileSteps, type SkipProgram, type Step } from './skip-program.ts'

const skip = (bytes: number): Step => ({ op: 'skip', bytes })
const error: Step = { op: 'error' }
const end: Step = { op: 'end' }
const nothing: readonly Step[] = []

/** @returns the program for a response body, or undefined where there is none for this API */
export function skipProgram(apiKey: number, version: number): SkipProgram | undefined {
  if (apiKey === apiKeys.Fetch) return compileSteps(fetchSteps(version))
  if (apiKey === apiKeys.Produce) return compileSteps(produceSteps(version))
  return undefined
}

interface Words {
  readonly text: Step
  readonly bytes: Step
  readonly loop: Step
  readonly tags: readonly Step[]
}

function words(flexible: boolean): Words {
  return {
    text: { op: 'sized', length: flexible ? 'compact' : 'int16' },
    bytes: { op: 'sized', length: flexible ? 'compact' : 'int32' },
    loop: { op: 'loop', length: flexible ? 'compact' : 'int32' },
    tags: flexible ? [{ op: 'tags' }] : nothing,
  }
}

/** Since version `from`. */
function since(version: number, from: number, ...steps: Step[]): readonly Step[] {
  return version >= from ? steps : nothing
}

function fetchSteps(v: number): Step[] {
  const { text, bytes, loop, tags } = words(v >= 12)
  return [
    ...since(v, 1, skip(4)), // throttle time
    ...since(v, 7, error, skip(4)), // session id
    loop,
    v >= 13 ? skip(16) : text, // topic id, topic name
    loop,
    skip(4), // partition
    error,
    skip(8), // high watermark
    ...since(v, 4, skip(8)), // last stable offset
    ...since(v, 5, skip(8)), // log start offset
    ...since(v, 4, loop, skip(16), ...tags, end), // aborted transactions
    ...since(v, 11, skip(4)), // preferred read replica
    bytes, // records
    ...tags,
    end,
    ...tags,
    end,
  ]
}

function produceSteps(v: number): Step[] {
  const { text, loop, tags } = words(v >= 9)
  return [
    loop,
    v >= 13 ? skip(16) : text, // topic id, topic name
    loop,
    skip(4), // partition
    error,
    skip(8), // base offset
    ...since(v, 2, skip(8)), // log append time
    ...since(v, 5, skip(8)), // log start offset
    ...since(v, 8, loop, skip(4), text, ...tags, end, text), // record errors, error message
    ...tags,
    end,
    ...tags,
    end,
    ...since(v, 1, skip(4)), // throttle time
  ]
}
