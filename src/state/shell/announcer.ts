/** Log lines about the fleet: the state reached and lost, who leads, who came and who was expelled. */
import type { Log } from '../../telemetry/log.ts'
import type { FleetState } from '../fleet.ts'
import type { StateStatus } from '../state.ts'

export class Announcer {
  readonly #log: Log
  #condition: StateStatus['condition'] = 'loading'
  #isLeader = false
  #leader: string | undefined

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
    if (isLeader && !this.#isLeader) this.#log.info({ proxy }, 'this proxy coordinates the fleet now')
    else if (!isLeader && this.#isLeader)
      this.#log.info({ proxy, leader }, 'this proxy coordinates the fleet no longer')
    this.#condition = condition
    this.#isLeader = isLeader
    this.#leader = leader
    return isChanged
  }

  /** A new life began: what was is no news. */
  changed(): void {
    this.#isLeader = false
    this.#leader = undefined
  }

  fleet(before: FleetState, after: FleetState): void {
    if (before === after) return
    for (const [proxy, { host, expelledAt }] of Object.entries(after.members)) {
      const known = before.members[proxy]
      if (expelledAt === undefined && known === undefined) this.#log.info({ proxy, host }, 'proxy joined the fleet')
      if (expelledAt !== undefined && known !== undefined && known.expelledAt === undefined)
        this.#log.warn({ proxy, host }, 'proxy expelled from the fleet')
    }
  }
}
