/** DescribeConfigs: of a topic what it was created with, of anything else nothing. */
import { errorCodes } from '../../protocol/error-codes.ts'
import { describeConfigs } from '../../protocol/generated/32-describe-configs.ts'
import { api } from '../api.ts'

const TOPIC = 2
const DYNAMIC_TOPIC_CONFIG = 1

export const describeConfigsApi = api(
  describeConfigs,
  ({ request, cluster }) => ({
    results: request.resources.map(({ resourceType, resourceName, configurationKeys }) => {
      const topic = resourceType === TOPIC ? cluster.topics.named(resourceName) : undefined
      const missing = resourceType === TOPIC && topic === undefined
      const errorCode = missing ? errorCodes.UNKNOWN_TOPIC_OR_PARTITION : 0
      const configs = Array.from(topic?.configs ?? [])
        .filter(([name]) => configurationKeys?.includes(name) ?? true)
        .map(([name, value]) => ({
          name,
          value,
          readOnly: false,
          configSource: DYNAMIC_TOPIC_CONFIG,
          isSensitive: false,
          synonyms: [],
        }))
      return { errorCode, errorMessage: null, resourceType, resourceName, configs }
    }),
  }),
  { min: 1 },
)
