import type { Option } from 'commander'
import { batchFlags } from '../batch/flags.ts'
import { isRequestFlag, type SettingName, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { generalFlags, requestFlags } from './flags.ts'
import { formatList } from './help-text.ts'
import batch from './topics/batch.txt'
import ci from './topics/ci.txt'
import environment from './topics/environment.txt'
import eventTypes from './topics/event-types.txt'
import exitCodes from './topics/exit-codes.txt'
import formats from './topics/formats.txt'
import input from './topics/input.txt'
import platforms from './topics/platforms.txt'
import policy from './topics/policy.txt'
import profiles from './topics/profiles.txt'
import settings from './topics/settings.txt'
import type { TopicName } from './topics.ts'

const texts: Record<TopicName, string> = {
  settings,
  profiles,
  environment,
  input,
  'event-types': eventTypes,
  policy,
  batch,
  ci,
  platforms,
  'exit-codes': exitCodes,
  formats,
}

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

/** When a run ends with each exit code, by kind. */
export const exitsWhen = new Map(
  [...exitCodes.replace(/\n {9,}/g, ' ').matchAll(/^ {2}\d+ +(\S+) +(.*?)(?: \[.*\])?$/gm)].map(
    ([, kind, when]) => [kind, when],
  ),
)

/** A topic for a screen of so many columns. */
export const writeTopic = (name: TopicName, width: number | undefined): string =>
  texts[name].replace(/^\{(.*)\}$/gm, (_, list) => formatList(lists[list]?.() ?? [], width))
