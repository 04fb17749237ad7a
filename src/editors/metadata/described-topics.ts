/**
 * DescribeTopicPartitions (KIP-966), by which admin clients list the partitions of topics in pages: partitions above the
 * count that a policy names are taken out of each page, as they are from Metadata. Cursors stay the broker's: a client
 * that asks on where only hidden partitions are left is given them empty, and then the next topic.
 */
import { apiKeys } from '../../protocol/api-table.ts'
import { codec } from '../../protocol/codecs.ts'
import { responseFrame } from '../../protocol/encode.ts'
import { errorCodes } from '../../protocol/error-codes.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type {
  DescribeTopicPartitionsResponse,
  DescribeTopicPartitionsResponseTopic,
} from '../../protocol/generated/75-describe-topic-partitions.ts'
import { peekResponseBodyStart } from '../../protocol/peek.ts'
import { Reader } from '../../protocol/reader.ts'
import type { Exchange } from '../../pipeline/exchange.ts'
import { frameOf } from '../../pipeline/frame.ts'
import type { Handler, Interest, Verdict } from '../../pipeline/handler.ts'
import type { TopicPolicy } from './topic-policy.ts'

const api = codec(apiKeys.DescribeTopicPartitions)

export class DescribedTopics implements Handler {
  readonly name = 'described-topics'
  readonly interests: readonly Interest[] = [
    { apiKey: apiKeys.DescribeTopicPartitions, side: 'response', depth: 'full' },
  ]
  private readonly policy: Pick<TopicPolicy, 'topic'>

  constructor(policy: Pick<TopicPolicy, 'topic'>) {
    this.policy = policy
  }

  onResponse(exchange: Exchange): Verdict {
    const body = this.read(exchange)
    if (body === undefined) return undefined
    const cut = body.nextCursor?.topicName
    const topics = body.topics.map((topic) => this.shown(exchange, topic, topic.name === cut))
    if (topics.every((topic, index) => topic === body.topics[index])) return undefined
    exchange.response = frameOf(responseFrame(exchange.correlationId, api, { ...body, topics }, exchange.apiVersion))
    return undefined
  }

  private read({ response, apiKey, apiVersion }: Exchange): DescribeTopicPartitionsResponse | undefined {
    if (response === undefined) return undefined
    const end = response.at + response.total
    const at = peekResponseBodyStart(apiKey, apiVersion, response.bytes, response.at + 4, end)
    try {
      return at < 0 ? undefined : api.decodeResponse(new Reader(response.bytes, at, end), apiVersion)
    } catch (error) {
      if (error instanceof ProtocolError) return undefined
      throw error
    }
  }

  /**
   * Nothing waits here: an admin client that asks while a change is being prepared asks again.
   * @param isCut the page ends within the topic, so that its partitions do not tell how many there are
   */
  private shown({ connection }: Exchange, topic: DescribeTopicPartitionsResponseTopic, isCut: boolean) {
    const { name, topicId, errorCode, partitions } = topic
    if (name === null || errorCode !== errorCodes.NONE || partitions.length === 0) return topic
    const count = isCut ? 0 : Math.max(...partitions.map(({ partitionIndex }) => partitionIndex + 1))
    const decision = this.policy.topic(connection, { name, topicId, count, isNamed: false })?.decide(true)
    if (decision === undefined || decision === 0) return topic
    if (typeof decision !== 'number') return { ...topic, errorCode: errorCodes.LEADER_NOT_AVAILABLE, partitions: [] }
    const shown = partitions.filter((one) => one.partitionIndex < decision)
    return shown.length === partitions.length ? topic : { ...topic, partitions: shown }
  }
}
