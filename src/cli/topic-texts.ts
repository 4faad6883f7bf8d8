import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Option } from 'commander'
import { batchFlags } from '../batch/flags.ts'
import { isRequestFlag, type SettingName, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { generalFlags, requestFlags } from './flags.ts'
import { formatList } from './help-text.ts'
import type { TopicName } from './topics.ts'

type Row = [term: string, about: string]

/** The lists that the code has; `{settings}` on a line of its own is the place of one in a text. */
const lists: Record<string, () => Row[]> = {
  settings: () => settingNames.map((name) => [name, describeSetting(name)]),
  'general flags': () => generalFlags().map(flagRow),
  'request flags': () => requestFlags().map(flagRow),
  'batch flags': () => batchFlags().map(flagRow),
  variables: () => [
    ...settingNames.map((name): Row => [variableOf(name), settingOf(name).about]),
    ['PARLEY_PROFILE', 'the current profile'],
    ['PARLEY_SESSION', 'the session of events send, confirm, run, list and follow'],
    ['PARLEY_CONFIG_DIR', 'the folder of the profile file'],
    ['HTTPS_PROXY, HTTP_PROXY', 'a proxy; also ALL_PROXY, and NO_PROXY for hosts to reach without one'],
    ['NODE_EXTRA_CA_CERTS', "a file of CA certificates, in addition to the system's"],
    ['NODE_DISABLE_COMPILE_CACHE', 'keep no compiled code; it would be in ~/.cache/parley'],
    ['TRACEPARENT, TRACESTATE', 'a trace to continue (W3C Trace Context), sent as headers'],
    ['NO_COLOR, FORCE_COLOR', 'no colour, or always colour; TERM=dumb means no colour'],
  ],
}

const flagRow = ({ flags, description }: Option): Row => [flags, description]

function describeSetting(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const defaults = value === undefined ? [] : [`default ${value}`]
  const flags = isRequestFlag(name) ? [] : [ownFlag === undefined ? 'no flag' : `flag ${ownFlag}`]
  const details = [...defaults, ...flags].join(', ')
  return details === '' ? about : `${about} (${details})`
}

/** A topic's text, which the build puts beside the program. */
const readText = (name: TopicName) => readFileSync(join(import.meta.dirname, `topics/${name}.txt`), 'utf8')

/** When a run ends with each exit code, by kind. */
export function readExits(): Map<string | undefined, string | undefined> {
  const rows = readText('exit-codes').replace(/\n {9,}/g, ' ')
  const found = rows.matchAll(/^ {2}\d+ +(\S+) +(.*?)(?: \[.*\])?$/gm)
  return new Map([...found].map(([, kind, when]) => [kind, when]))
}

/** A topic for a screen of so many columns. */
export const writeTopic = (name: TopicName, width: number | undefined): string =>
  readText(name).replace(/^\{(.*)\}$/gm, (_, list) => formatList(lists[list]?.() ?? [], width))
