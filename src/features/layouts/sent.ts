/** What was sent and may have to be sent again: when it was sent last. What is older than a minute is forgotten. */
export type Sent = Readonly<Record<string, number>>

const rememberedMs = 60_000
/** Looked through for what is old only once there is so much of it. */
const many = 100

export function noteSent(sent: Sent, what: string, atMs: number): Sent {
  const entries = Object.entries(sent)
  const kept = entries.length < many ? sent : Object.fromEntries(entries.filter(([, ms]) => atMs - ms < rememberedMs))
  return { ...kept, [what]: atMs }
}
