import { isUtf8 } from 'node:buffer'
import { cutLines } from '../io/cut-lines.ts'
import { wayToUtf8 } from '../io/utf8.ts'

/** A line of a batch's input that is not empty: its text, or its problem. */
export type TextLine = { number: number } & ({ text: string } | { problem: string })

const mebibyte = 1024 * 1024
const longestMebibytes = 64

/** Reads the lines of a batch's input one by one, with their numbers from 1. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  longest = longestMebibytes * mebibyte,
): AsyncGenerator<TextLine, void, undefined> {
  let number = 0
  for await (const lines of cutLines(chunks, longest)) {
    for (const { bytes } of lines) {
      number++
      if (!bytes) yield { number, problem: `it is longer than ${longest / mebibyte} MiB` }
      else if (!isUtf8(bytes)) yield { number, problem: `it is not UTF-8 text: ${wayToUtf8(bytes)}` }
      else {
        // This takes a byte order mark away too.
        const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString().trim()
        if (text !== '') yield { number, text }
      }
    }
  }
}
