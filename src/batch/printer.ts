import { CliError, OutputClosed } from '../errors.ts'

/** Throws as stdout does. */
export interface LineOutput {
  write(text: string): Promise<void>
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

/** Writes lines one after the other. */
interface Printer {
  /** All that was given to it is taken. */
  readonly isIdle: boolean
  print(line: string): void
  /** Resolves once all is written. */
  end(): Promise<void>
}

export interface PrinterOptions {
  /** All is taken. */
  onIdle(): void
  /** A line could not be written. */
  onError(error: unknown): void
}

export function createPrinter(output: LineOutput, { onIdle, onError }: PrinterOptions): Printer {
  let waiting = 0
  let last: Promise<void> = Promise.resolve()
  const fail = (error: unknown) => onError(error instanceof OutputClosed ? readerGone() : error)
  return {
    get isIdle() {
      return waiting === 0
    },
    print(line) {
      waiting++
      last = last
        .then(() => output.write(`${line}\n`))
        .catch(fail)
        .then(() => {
          if (--waiting === 0) onIdle()
        })
    },
    end: () => last.then(() => output.flush()).catch(fail),
  }
}

const readerGone = () => new CliError('file', 'stdout: its reader has gone', { sent: 'yes' })
