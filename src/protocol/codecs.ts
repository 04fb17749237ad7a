/** Finds the generated codec of an API. */
import type { Codec } from './codec.ts'
import { codecsByKey } from './generated/registry.ts'

type Codecs = typeof codecsByKey

/** A codec whose message types are not known: what look-ups by a number from the wire return. */
export type AnyCodec = Codec<object, object>

const byKey: readonly (AnyCodec | undefined)[] = Object.values(codecsByKey).reduce<(AnyCodec | undefined)[]>(
  (table, codec) => {
    table[codec.key] = codec
    return table
  },
  [],
)

/**
 * The codec of an API key; undefined when there is none. With a key from `apiKeys` the message types are known:
 * `codec(apiKeys.Fetch).decodeResponse(reader, 13).responses`.
 */
export function codec<K extends keyof Codecs>(key: K): Codecs[K]
export function codec(key: number): AnyCodec | undefined
export function codec(key: number): AnyCodec | undefined {
  return byKey[key]
}
