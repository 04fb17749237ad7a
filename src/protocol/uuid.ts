/** UUIDs as Kafka's tools print them: 22 characters of base64url without padding. */

/** The id that stands for "no topic". */
export const zeroUuid = 'AAAAAAAAAAAAAAAAAAAAAA'

/** Whether `text` is the base64url form of 16 bytes. */
export function isUuid(text: string): boolean {
  return /^[A-Za-z0-9_-]{21}[AQgw]$/.test(text)
}
