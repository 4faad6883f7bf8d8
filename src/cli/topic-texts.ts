import type { Option } from 'commander'
import { batchFlags } from '../batch/flags.ts'
import { outcomes } from '../errors.ts'
import { isRequestFlag, type SettingName, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { madeTypes } from '../wire/sessions/event-types.ts'
import { generalFlags, requestFlags } from './flags.ts'
import { forms } from './formats.ts'
import { formatList } from './help-text.ts'
import batchText from './topics/batch.txt'
import ciText from './topics/ci.txt'
import eventTypesText from './topics/event-types.txt'
import inputText from './topics/input.txt'
import platformsText from './topics/platforms.txt'
import policyText from './topics/policy.txt'
import profilesText from './topics/profiles.txt'
import type { TopicName } from './topics.ts'

/** A text for a screen of so many columns. */
type Topic = (width: number | undefined) => string

const settings: Topic = (
  width,
) => `A setting comes from the first of: a flag, the profile named by --profile, the environment, the current profile, the default.

Each has one name in three spellings: baseUrl in a profile, --base-url as a flag, PARLEY_BASE_URL in the environment. Flags can come before or after the command's name. A duration is a number of seconds, or 500ms, 10s, 2m, 1h. Instead of true or false, yes or no, on or off, 1 or 0 work too.

  parley chat --timeout 30s 'Say hello'
  PARLEY_TIMEOUT=2m parley chat 'Say hello'
  parley config set timeout 30
  parley config list --effective

Settings:
${formatList(settingRows(), width)}

Flags of every command:
${formatList(generalFlags().map(flagRow), width)}

Flags of every command that sends a request:
${formatList(requestFlags().map(flagRow), width)}
`

const flagRow = ({ flags, description }: Option): [string, string] => [flags, description]

const batch: Topic = (width) => `${batchText}
Flags:
${formatList(batchFlags().map(flagRow), width)}
`

const environment: Topic = (
  width,
) => `Every setting can be set in the environment; an empty value counts as not set. With --profile, addresses and secrets never come from the environment.

${formatList(variableRows(), width)}
`

const exitCodes: Topic = (
  width,
) => `How a run ended, and in brackets whether the same command may be run again.

${formatList(exitRows(), width)}

A script need not know the table: with --errors json the field "retry" of a failure says whether to run the command again.

${formatList(retries, width)}

If an error comes with status 200, the exit code is that of the type of the error. That does not prove that an event was refused: look first, whatever the code. An error in a stream is 8. In the stream of a session it is 3, 4 or 5 if it is permanent (credentials, payment, or the request itself).

A failure has "deadline":true if --deadline caused it. The "error" of a line of a batch has both fields, too. A batch that has answers is "later" only with --resume: without it, the same command would ask for them again. If a command resumes the session, the field "resume" has it.

A signal ends parley by that signal: a shell sees 130 or 143. With --errors json parley prints a line of the same form, of the kind "signal".
`

const retries: [string, string][] = [
  ['never', 'it would fail in the same way, or something has to be fixed first'],
  ['later', 'the same command may be run again without harm'],
  ['look-first', "an event may have arrived: look with 'parley events list' first"],
]

const formats: Topic = (
  width,
) => `What programs read is kept for a major version: the fields that stand here, and their meaning. More fields may come. "format" counts the versions of a form.

${Object.values(forms)
  .map(
    ({ where, fields }) =>
      `${where}\n\n${formatList(
        Object.entries(fields).map(([name, [, about]]) => [name, about]),
        width,
      )}`,
  )
  .join('\n\n')}

A failure, and a line of an audit, have only the fields that apply. A policy has the form of 'parley help policy', and an event that of the service.
`

const eventTypes: Topic = () => `${eventTypesText}
'parley events list' and 'parley events follow' also show what the service makes: ${madeTypes.join(', ')}, and others that a service may have.
`

export const writers: Record<TopicName, Topic> = {
  settings,
  profiles: () => profilesText,
  environment,
  input: () => inputText,
  'event-types': eventTypes,
  policy: () => policyText,
  batch,
  ci: () => ciText,
  platforms: () => platformsText,
  'exit-codes': exitCodes,
  formats,
}

type TopicRow = [term: string, about: string]

/** Every setting, in the spelling of the profile file. */
export const settingRows = (): TopicRow[] => settingNames.map((name) => [name, describeSetting(name)])

function describeSetting(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const defaults = value === undefined ? [] : [`default ${value}`]
  const flags = isRequestFlag(name) ? [] : [ownFlag === undefined ? 'no flag' : `flag ${ownFlag}`]
  const details = [...defaults, ...flags].join(', ')
  return details === '' ? about : `${about} (${details})`
}

export const variableRows = (): TopicRow[] => [
  ...settingNames.map((name): TopicRow => [variableOf(name), settingOf(name).about]),
  ['PARLEY_PROFILE', 'the current profile'],
  ['PARLEY_SESSION', 'the session of events send, confirm, run, list and follow'],
  ['PARLEY_CONFIG_DIR', 'the folder of the profile file'],
  ['HTTPS_PROXY, HTTP_PROXY', 'a proxy; also ALL_PROXY, and NO_PROXY for hosts to reach without one'],
  ['NODE_EXTRA_CA_CERTS', "a file of CA certificates, in addition to the system's"],
  ['NODE_DISABLE_COMPILE_CACHE', 'keep no compiled code; it would be in ~/.cache/parley'],
  ['TRACEPARENT, TRACESTATE', 'a trace to continue (W3C Trace Context), sent as headers'],
  ['NO_COLOR, FORCE_COLOR', 'no colour, or always colour; TERM=dumb means no colour'],
]

export const exitRows = (): TopicRow[] => [
  ['0', 'done'],
  ...Object.entries(outcomes).map(
    ([kind, { exit, when, again }]): TopicRow => [
      `${exit}`.padEnd(4) + kind,
      `${when}${again && ` [${again}]`}`.replaceAll('`', ''),
    ],
  ),
]
