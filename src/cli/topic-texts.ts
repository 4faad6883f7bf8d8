import type { Option } from 'commander'
import { outcomes } from '../errors.ts'
import { hasFlag, type SettingName, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { generalFlags, requestFlags } from './flags.ts'
import { formatList } from './help-text.ts'
import { policyText } from './policy-topic.ts'
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
${formatList(
  settingNames.map((name) => [name, describeSetting(name)]),
  width,
)}

Flags of every command:
${formatList(generalFlags().map(flagRow), width)}

Flags of every command that sends a request:
${formatList(requestFlags().map(flagRow), width)}
`

const flagRow = ({ flags, description }: Option): [string, string] => [flags, description]

function describeSetting(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const defaults = value === undefined ? [] : [`default ${value}`]
  const flags = hasFlag(name) ? [] : [ownFlag === undefined ? 'no flag' : `flag ${ownFlag}`]
  const details = [...defaults, ...flags].join(', ')
  return details === '' ? about : `${about} (${details})`
}

const environment: Topic = (
  width,
) => `Every setting can be set in the environment; an empty value counts as not set. With --profile, addresses and secrets never come from the environment.

${formatList(
  [
    ...settingNames.map((name): [string, string] => [variableOf(name), settingOf(name).about]),
    ['PARLEY_PROFILE', 'the current profile'],
    ['PARLEY_SESSION', 'the session of events send, confirm, run, list and follow'],
    ['PARLEY_CONFIG_DIR', 'the folder of the profile file'],
    ['HTTPS_PROXY, HTTP_PROXY', 'a proxy; also ALL_PROXY, and NO_PROXY for hosts that need none'],
    ['NODE_EXTRA_CA_CERTS', "a file of CA certificates, in addition to the system's"],
    ['NO_COLOR, FORCE_COLOR', 'no colour, or always colour; TERM=dumb means no colour'],
  ],
  width,
)}
`

const exitCodes: Topic = (
  width,
) => `How a run ended, and in brackets whether the same command may be run again.

${formatList(
  [
    ['0', 'done'],
    ...Object.entries(outcomes).map(([kind, { exit, when, again }]): [string, string] => [
      `${exit}`.padEnd(4) + kind,
      `${when}${again && ` [${again}]`}`.replaceAll('`', ''),
    ]),
  ],
  width,
)}

A signal ends parley by that signal: a shell sees 130 or 143.
`

const profiles: Topic =
  () => `A profile is a named set of settings in your profile file ('parley config path' prints its path). This asks for everything:

  parley config init

These set one value. A secret is never an argument: it comes from stdin, or a command prints it.

  parley config set baseUrl https://gateway.example
  parley config set accessToken < token.txt
  parley config set accessTokenCommand 'pass show gateway'

Another profile, from now on or for one command:

  parley config set --profile work baseUrl https://work.example
  parley config use work
  parley chat --profile work 'Say hello'

A value comes from the first of: a flag, the profile named by --profile, the environment, the current profile, the default. With --profile, addresses and secrets never come from the environment. A secret goes only to the address from the same place, or to an address given by flag. 'parley config list --effective' shows which values apply, and why; 'parley help settings' lists the settings.
`

const input: Topic =
  () => `A prompt is the words, then the text of a pipe; or that text alone, which is a body if it begins with {. The word - puts the piped text in its place:

  parley chat 'Why is the sky blue?'
  git diff | parley chat 'Review this:'
  parley chat < prompt.txt
  parley chat 'Compare this:' - 'with what you know' < notes.md

A whole body is sent as it is written. Files become parts of the turn.

  parley chat -i body.json
  parley chat -f diagram.png 'What is missing?'

Flags are merged over a body: words and -f add a turn, --max-output-tokens, --temperature and --system set their fields, --set PATH=VALUE comes last (a.b, a[0], a[], a["x.y"]; VALUE is JSON, else text).

Flags that mention @FILE read a file when their value begins with @: @notes.md is the text of that file, @- the text on stdin, @@home the text @home. A value that comes from a stranger should not begin with @. Words are always sent as they are.

  parley events send -s sesn_1 --tool-result toolu_1=@out.txt
  parley events send -s sesn_1 --message @- < notes.md

In a 'while read' loop parley would read the loop's input: use --no-stdin or </dev/null there.
`

export const writers: Record<TopicName, Topic> = {
  settings,
  profiles,
  environment,
  input,
  policy: () => policyText,
  'exit-codes': exitCodes,
}
