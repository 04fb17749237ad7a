/** Log lines about the fleet: the state reached and lost, who leads, who came and who was expelled. */
import type { Log } from '../../telemetry/log.ts'
import type { FleetState } from '../fleet.ts'
import { type StateStatus, withOtherRules } from '../state.ts'

export class Announcer {
  readonly #log: Log
  #condition: StateStatus['condition'] = 'loading'
  #isLeader = false
  #leader: string | undefined
  /** Who the log says leads: a rebalance, in which nobody does for a moment, is no news. */
  #announced: string | undefined
  /** Proxies that were said to have other rules. */
  #others = ''

  constructor(log: Log) {
    this.#log = log
  }

  /** @returns whether lease or leadership is another one than before */
  look(status: StateStatus, isLeader: boolean): boolean {
    const { condition, problem, proxy, proxies, leader } = status
    const isChanged = condition !== this.#condition || isLeader !== this.#isLeader || leader !== this.#leader
    if (condition === 'ready' && this.#condition !== 'ready') {
      this.#log.info({ proxy, proxies: proxies.length }, 'state reached: layout features are active')
    } else if (condition !== 'ready' && this.#condition === 'ready') {
      this.#log.warn({ proxy, problem }, 'state lost: layout features wait, plain traffic goes on')
    }
    if (leader !== undefined && leader !== this.#announced) {
      if (leader === proxy) this.#log.info({ proxy }, 'this proxy coordinates the fleet now')
      else if (this.#announced !== undefined) this.#log.info({ leader }, 'another proxy coordinates the fleet now')
      this.#announced = leader
    }
    if (condition === 'ready') this.#rules(status)
    this.#condition = condition
    this.#isLeader = isLeader
    this.#leader = leader
    return isChanged
  }

  #rules(status: StateStatus): void {
    const others = withOtherRules(status).map(({ proxy, host }) => `${proxy} (${host})`)
    const said = others.join(', ')
    if (said === this.#others) return
    this.#others = said
    if (others.length === 0) return this.#log.info({}, 'every proxy of the fleet has the same rules again')
    const fix = 'give every proxy the same topics: and groups:, or records may be reordered'
    this.#log.warn({ proxies: others }, `proxies of this fleet have other rules than this one: ${fix}`)
  }

  fleet(before: FleetState, after: FleetState): void {
    if (before === after) return
    for (const [proxy, { host, expelledAt, hasLeft }] of Object.entries(after.members)) {
      const known = before.members[proxy]
      if (expelledAt === undefined && known === undefined) this.#log.info({ proxy, host }, 'proxy joined the fleet')
      if (expelledAt === undefined || known === undefined || known.expelledAt !== undefined) continue
      if (hasLeft === true) this.#log.info({ proxy, host }, 'proxy left the fleet')
      else this.#log.warn({ proxy, host }, 'proxy expelled from the fleet')
    }
  }
}
