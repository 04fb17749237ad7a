/** Topics of the demos. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Admin } from 'kafkajs'

/** Creates a topic and waits until all of it is served. kafkajs's own wait ends with an error where the broker is slow. */
export async function createTopic(admin: Admin, topic: string, numPartitions: number): Promise<void> {
  await admin.createTopics({ waitForLeaders: false, topics: [{ topic, numPartitions }] })
  for (let attempt = 0; ; attempt++) {
    const served = await admin.fetchTopicOffsets(topic).catch(() => [])
    if (served.length === numPartitions) return
    if (attempt === 300) throw new Error(`topic ${topic} was created, and is not served within half a minute`)
    await delay(100)
  }
}
