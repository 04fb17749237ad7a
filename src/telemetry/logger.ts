/**
 * The log of the process: pino, pretty on a terminal and JSON lines otherwise. Lines are written in the background, so
 * a slow reader of standard output never stops the event loop; `close` writes what is left before the process ends.
 */
import { isatty } from 'node:tty'
import pino from 'pino'
import type { Log } from './log.ts'

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** How long the end of the process waits for a reader of its log. */
const patienceMs = 500

export interface LogOptions {
  readonly level: LogLevel
  readonly format: 'auto' | 'json' | 'pretty'
}

export interface Logger extends Log {
  /** The least severe level that is written; may be changed while running. */
  level: LogLevel
  /** How lines are written, after `auto` was decided. */
  readonly format: 'json' | 'pretty'
  /** Writes what is still on its way; resolves then, or after half a second if nobody reads. Log nothing afterwards. */
  close(): Promise<void>
}

/** A logger on a file descriptor, by default standard output. */
export async function createLogger(options: LogOptions, fd = 1): Promise<Logger> {
  const format = options.format === 'auto' ? (isatty(fd) ? 'pretty' : 'json') : options.format
  const destination = pino.destination({ dest: fd, sync: format === 'pretty' })
  destination.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`headgate: cannot write the log: ${error.message}\n`)
  })
  const stream = format === 'pretty' ? await prettyStream(isatty(fd), destination) : destination
  const settings: pino.LoggerOptions = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  }
  const logger = pino(settings, stream)
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    get level() {
      return logger.level as LogLevel
    },
    set level(level) {
      logger.level = level
    },
    format,
    close: () => finish(destination),
  }
}

async function prettyStream(colorize: boolean, destination: ReturnType<typeof pino.destination>) {
  const { default: pretty } = await import('pino-pretty')
  return pretty({ colorize, destination, translateTime: 'SYS:HH:MM:ss.l', singleLine: true })
}

function finish(destination: ReturnType<typeof pino.destination>): Promise<void> {
  return new Promise((resolve) => {
    // Not flushSync: it overtakes, and can lose, a line whose write is under way.
    const done = () => {
      clearTimeout(patience)
      resolve()
    }
    const patience = setTimeout(resolve, patienceMs)
    destination.once('close', done)
    destination.once('error', done)
    destination.end()
  })
}
