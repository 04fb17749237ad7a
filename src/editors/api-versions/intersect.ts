/** What a client may use: what its broker and Headgate both know. */
import { apiByKey, apiKeys } from '../../protocol/api-table.ts'
import type { ApiVersionsResponse } from '../../protocol/generated/18-api-versions.ts'

/** Features that steer clients to an API; without that API they must not be announced. */
const featureApis: Readonly<Record<string, number>> = {
  'group.version': apiKeys.ConsumerGroupHeartbeat,
  'share.version': apiKeys.ShareFetch,
  'streams.version': apiKeys.StreamsGroupHeartbeat,
}

/**
 * Narrows a broker's answer to what the API table knows. The broker's minimum versions are kept: Kafka 4 advertises
 * Produce from 0 although it takes 3 and newer, since librdkafka infers compression support from that (KAFKA-18659).
 * APIs that are not in the table are left out: one that carries addresses would lead clients around the proxy.
 */
export function intersect(broker: ApiVersionsResponse): ApiVersionsResponse {
  const apiKeysShown = broker.apiKeys.flatMap((range) => {
    const known = apiByKey(range.apiKey)
    if (known?.client !== true) return []
    if (range.minVersion > known.maxVersion || range.maxVersion < known.minVersion) return []
    return [{ ...range, maxVersion: Math.min(range.maxVersion, known.maxVersion) }]
  })
  const shown = new Set(apiKeysShown.map((range) => range.apiKey))
  const withheld = (feature: { name: string }): boolean => {
    const api = featureApis[feature.name]
    return api !== undefined && !shown.has(api)
  }
  return {
    ...broker,
    apiKeys: apiKeysShown,
    supportedFeatures: broker.supportedFeatures.filter((feature) => !withheld(feature)),
    finalizedFeatures: broker.finalizedFeatures.filter((feature) => !withheld(feature)),
  }
}
