/** Records of an aborted transaction are never given to a member that reads committed records only. */
import type { Rule } from '../rule.ts'

export const abortedUnseen: Rule = {
  name: 'aborted-unseen',
  about: 'no record of an aborted transaction is delivered',
  judge(index, report) {
    return {
      see({ event, client, origin }) {
        if (event.event !== 'delivered' || index.outcome(origin) !== 'aborted') return
        if (index.lives.get(client)?.isolation === 'read_uncommitted') return
        report('delivered, but its transaction was aborted', index.ending(origin), event)
      },
    }
  },
}
