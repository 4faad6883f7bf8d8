import { Argument, Option } from 'commander'
import { SettingArgument } from '../argv/flags.ts'
import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { escapeControls, toOneLine } from '../io/escape.ts'
import { formatTsvLine } from '../io/tsv.ts'
import { findProfilePath, readProfileFile, requireProfilePath } from '../settings/profile-file.ts'
import {
  addProfileValue,
  changeProfile,
  changeProfileFile,
  chooseProfileName,
  createUnknownProfileError,
  defaultProfileName,
  demoProfileName,
  findProfileValues,
  listProfileNames,
  readProfile,
  requireChangeableProfile,
} from '../settings/profiles.ts'
import { chooseSettingValues, formatProfileFlag, type UncheckedSetting } from '../settings/resolve.ts'
import { parseSetting } from '../settings/schemas.ts'
import { parseSettingInput } from '../settings/setting-input.ts'
import {
  findSettingName,
  formatSettingValue,
  isSecretSetting,
  maskSettingValue,
  type SettingName,
  settingNames,
} from '../settings/table.ts'
import { describeUndocumentedBeta } from '../wire/sessions/betas.ts'
import type { CommandModule } from './command.ts'

export const configCommands = {
  init: {
    notes: [
      "Prompts on a terminal; in a script use 'parley config set'. At the end, parley offers to run 'parley config check'.",
    ],
    examples: ['parley config init', 'parley config init --profile work'],
    async run(context) {
      if (context.input.stdinKind !== 'terminal')
        throw usageError(
          "config init prompts on a terminal, but stdin is not a terminal: use 'parley config set'",
        )
      const [{ askYesNo, withPrompter }, { setUpProfile }] = await Promise.all([
        import('../io/question.ts'),
        import('../settings/setup.ts'),
      ])
      await withPrompter(context, async (prompter) => {
        if (!(await setUpProfile(context, prompter))) return
        if (!(await askYesNo(prompter, 'Check it now? [Y/n]', true))) return
        const { checkProfile } = await import('../check.ts')
        await checkProfile(context)
      })
    },
  },

  check: {
    notes: [
      'Prints one line per service: ok, reachable, failed, or not tried, with the reason. The exit code is that of the first failure. A request fails if the service sends nothing for 30 s, or for --timeout if that is shorter. --raw, --dry-run and --curl do not apply.',
      'From the gateway, parley requests the model by GET, which costs nothing. 401, 402, 403 and 407 are failures. A redirect, a web page, 408, 425 and a 5xx are failures too, because they do not show whether the gateway accepts the token. Any other status counts as reachable: the gateway did not refuse the token. Only a chat shows that the model answers.',
      'From the session service, parley requests one session. If the session service answers 404 or 405, it is reachable, but the status does not show whether it accepts the key.',
    ],
    examples: ['parley config check'],
    async run(context) {
      const { checkProfile } = await import('../check.ts')
      await checkProfile(context)
    },
  },

  set: {
    parameters: () => [
      new SettingArgument(),
      new Argument(
        '[value]',
        'its value; omit it for a secret, which parley reads from stdin or a hidden prompt',
      ),
      new Option('--no-validate', 'accept undocumented betas'),
    ],
    examples: [
      'parley config set baseUrl https://gateway.example',
      "parley config set accessTokenCommand 'pass show gateway'",
      'parley config set accessToken < token.txt',
      'parley config set --profile work baseUrl https://work.example',
    ],
    async run(context, { validate }: { validate: boolean }, [key = '', given]) {
      // The text after = may be a secret, so the message does not quote it.
      if (key.includes('='))
        throw usageError(
          'config set takes no =: write KEY VALUE as two words; a secret is read from stdin or a hidden prompt',
        )
      const name = findSettingName(key)
      if (!validate && name !== 'betas')
        throw usageError(
          '--no-validate works only with the setting betas: parley config set betas VALUE --no-validate',
        )
      if (isSecretSetting(name) && given !== undefined && given !== '-') {
        throw usageError(
          `${name} is a secret, and other users and the shell's history can show arguments: 'parley config set ${name}' prompts for a secret or reads it from stdin`,
        )
      }
      const read = () => readValue(context, name)
      const text =
        given === undefined || given === '-'
          ? await context.tracker.during({ onInterrupt: () => 'nothing was changed' }, read)
          : given
      const { value, problem, hadQuotes } = parseSettingInput(name, text)
      // The message does not quote the value, which may be a misplaced secret.
      if (problem !== undefined) throw usageError(`${name} ${problem}`)
      const unknown = name === 'betas' && validate ? describeUndocumentedBeta(value as string[]) : undefined
      if (unknown !== undefined) throw usageError(`${name}: ${unknown}`)
      let replaced: string[] = []
      const profile = await changeProfile(context, (values) => {
        const changed = addProfileValue(values, name, value)
        replaced = Object.keys(values).filter((other) => !Object.hasOwn(changed, other))
        return changed
      })
      // The name of a new profile may be misspelled, so a note names it. The default profile needs no note.
      if (profile.isNew && profile.name !== defaultProfileName)
        context.messages.note(`the profile '${profile.name}', chosen by ${profile.chosenBy}, is new`)
      if (hadQuotes) context.messages.note(`the quotes around the value of ${name} were removed`)
      for (const other of replaced) context.messages.note(`${other} was removed: ${name} replaces it`)
    },
  },

  get: {
    parameters: () => [new SettingArgument(), new Option('--reveal', 'show the whole secret')],
    examples: ['parley config get baseUrl', 'parley config get accessToken --reveal'],
    async run(context, options: { reveal?: boolean }, [key = '']) {
      const name = findSettingName(key)
      const profile = await readProfile(context)
      const value = profile.values[name]
      if (value === undefined)
        throw new CliError(
          'credentials',
          `${name} is not set in the profile '${profile.name}'; 'parley config list --effective' shows the values that apply`,
        )
      const whole = formatSettingValue(value)
      const shown = options.reveal ? whole : maskSettingValue(name, value)
      if (shown !== whole) context.messages.note('the secret is shortened; --reveal prints it')
      await printValue(context, shown)
    },
  },

  unset: {
    parameters: () => [new SettingArgument()],
    examples: ['parley config unset accessToken'],
    async run(context, _, [key = '']) {
      const name = findSettingName(key)
      let wasSet = false
      const profile = await changeProfile(context, ({ [name]: value, ...rest }) => {
        wasSet = value !== undefined
        return wasSet ? rest : undefined
      })
      if (!wasSet) context.messages.note(`${name} was not set in the profile '${profile.name}'`)
    },
  },

  list: {
    parameters: () => [new Option('--effective', 'list the values in effect, and the source of each')],
    notes: ['In a pipe the columns are separated by tabs.'],
    examples: ['parley config list', 'parley config list --effective'],
    async run(context, { effective }: { effective?: boolean }) {
      const { host, flags, messages, output } = context
      const profile = await readProfile(context, effective)
      const { name, chosenBy, values } = profile
      const sources = { flags: flags.settings, profile, env: host.env }
      const path = name === demoProfileName ? 'built in' : (findProfilePath(host) ?? '')
      const rows = effective
        ? chooseSettingValues(sources).map((each) => [
            each.setting,
            formatForDisplay(each),
            each.origin.label,
          ])
        : settingNames
            .filter((setting) => values[setting] !== undefined)
            .map((setting) => [setting, formatForDisplay({ setting, value: values[setting] })])
      if (effective) rows.unshift(['profile', name, chosenBy, path])
      const lines = output.isTerminal ? await layOutRows(rows) : rows.map(formatTsvLine)
      for (const line of lines) await output.write(line)
      if (rows.length === 0 && output.isTerminal) {
        const setUp = `'parley config init${formatProfileFlag({ profile })}' prompts for them`
        messages.note(
          `profile '${name}' has no settings yet: ${setUp}, and 'parley config list --effective' shows the values that apply`,
        )
      }
    },
  },

  use: {
    parameters: () => [
      new Argument('<name>', "the profile to use from now on: 'parley config profiles' lists them"),
    ],
    examples: ['parley config use work'],
    async run(context, _, [name = '']) {
      requireChangeableProfile(name)
      await changeProfileFile(context, (file) => {
        // The default profile exists even without values, so it can always be selected.
        if (findProfileValues(file, name) === undefined && name !== defaultProfileName)
          throw createUnknownProfileError(file, name)
        return { ...file, current: name }
      })
      noteOverride(context)
    },
  },

  profiles: {
    examples: ['parley config profiles'],
    async run(context) {
      const { host, messages, output } = context
      const file = await readProfileFile(host, messages)
      const current = chooseProfileName(context, file).name
      for (const name of listProfileNames(file)) {
        const mark = name === current ? '* ' : '  '
        await output.write(output.isTerminal ? `${mark}${toOneLine(name)}\n` : formatTsvLine([name]))
      }
    },
  },

  delete: {
    parameters: () => [
      new Argument(
        '<name>',
        "the profile to delete, with its secrets ('parley config profiles' lists the profiles)",
      ),
      new Option('--yes', 'delete without a prompt'),
    ],
    examples: ['parley config delete work', 'parley config delete work --yes'],
    async run(context, { yes }: { yes?: boolean }, [name = '']) {
      requireChangeableProfile(name)
      if (!yes && !(await confirmDeletion(context, name))) return context.messages.note('nothing was deleted')
      let isCurrent = false
      let isEmpty = false
      await changeProfileFile(context, (file) => {
        const { [name]: values, ...profiles } = file.profiles ?? {}
        if (findProfileValues(file, name) === undefined) throw createUnknownProfileError(file, name)
        isCurrent = (file.current || defaultProfileName) === name
        isEmpty = !Object.hasOwn(profiles, defaultProfileName)
        return { ...file, current: isCurrent ? undefined : file.current, profiles }
      })
      if (!isCurrent) return
      context.messages.note(
        `the current profile is '${defaultProfileName}'${isEmpty ? ', which has no settings' : ''}: 'parley config use NAME' selects another`,
      )
      noteOverride(context)
    },
  },

  path: {
    examples: ['parley config path'],
    run: async (context) => printValue(context, requireProfilePath(context.host)),
  },
} satisfies Record<string, CommandModule>

function noteOverride({ host, messages }: Context): void {
  const { PARLEY_PROFILE: override } = host.env
  if (override) messages.note(`PARLEY_PROFILE (${override}) overrides the current profile`)
}

/** Shows the problem of an invalid value instead of the value, which may be a misplaced secret. */
function formatForDisplay({ setting, value }: Pick<UncheckedSetting, 'setting' | 'value'>): string {
  const { problem } = parseSetting(setting, value)
  return problem ? `(${problem})` : maskSettingValue(setting, value)
}

/** Shortens no value. The terminal wraps long rows. */
async function layOutRows(rows: string[][]): Promise<string[]> {
  const { createTableFormatter } = await import('../io/columns.ts')
  const cells = rows.map((row) => row.map((cell) => toOneLine(cell, Infinity)))
  return createTableFormatter({ width: Infinity })(cells).map((line) => `${line}\n`)
}

async function readValue(context: Context, name: SettingName): Promise<string> {
  const { input } = context
  const piped = input.stdinKind === 'terminal' ? '' : await input.readText('-', name)
  if (piped !== '') return piped
  if (!isSecretSetting(name)) throw usageError(`${name} needs a value: parley config set ${name} VALUE`)
  if (input.stdinKind !== 'terminal')
    throw usageError(`${name}: stdin is empty. Run the command on a terminal, or with < FILE`)
  const { withPrompter } = await import('../io/question.ts')
  return withPrompter(context, (prompter) => prompter.prompt(`${name} (not shown): `, { isHidden: true }))
}

async function confirmDeletion(context: Context, name: string): Promise<boolean> {
  const file = await readProfileFile(context.host, context.messages)
  if (findProfileValues(file, name) === undefined) throw createUnknownProfileError(file, name)
  if (context.input.stdinKind !== 'terminal')
    throw usageError(
      `config delete prompts on a terminal, but stdin is not a terminal: add --yes to delete '${name}'`,
    )
  const { askYesNo, withPrompter } = await import('../io/question.ts')
  return withPrompter(context, (prompter) =>
    askYesNo(prompter, `Delete the profile '${toOneLine(name, 100)}' and its secrets? [y/N]`),
  )
}

const printValue = ({ output }: Context, value: string): Promise<void> =>
  output.write(`${output.isTerminal ? escapeControls(value) : value}\n`)
