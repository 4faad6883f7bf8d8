import { answering, ok, okText } from './answers.ts'
import { chat, faults, type Row } from './rows.ts'

const good = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const refused = { code: 2, err: ['parley: '] } satisfies Partial<Row>

/** A profile file with one profile, `default`. */
const profile = (values: string) =>
  `mkdir -m 700 conf; (umask 077; echo '{"profiles":{"default":${values}}}' > conf/config.json);
    export PARLEY_CONFIG_DIR=$PWD/conf;`

faults('P: durations and yes or no', [
  ...['--deadline 500ms', '--deadline=0.01m', '--timeout 500ms --retries 0', '--deadline 0.5'].map(
    (flags): Row => ({
      name: `P50 ${flags}`,
      shell: `parley chat hi --no-stdin ${flags}`,
      script: () => {},
      code: 10,
      reqs: 1,
      atLeast: 0.45,
      within: 5,
    }),
  ),
  ...['"500ms"', '0.5', '"0.5"', '"0.5s"'].map(
    (value): Row => ({
      name: `P50 the deadline ${value} in the profile file`,
      shell: `${profile(`{"deadline":${value}}`)} parley chat hi --no-stdin`,
      script: () => {},
      code: 10,
      reqs: 1,
      within: 5,
      files: ['cwd/conf/config.json'],
    }),
  ),
  ...['10 years', '5d', '1h30m', '-1s', '.5s', '1e3', 's', ''].map(
    (value): Row => ({
      ...refused,
      name: `P50 no duration: ${JSON.stringify(value)}`,
      argv: [...chat, `--timeout=${value}`],
      err: ['parley: --timeout must be a duration such as 500ms, 10s, 2m or 1h; a bare number is seconds\n'],
    }),
  ),
  {
    name: 'P50 no duration in the environment',
    env: { PARLEY_DEADLINE: 'soon' },
    code: 3,
    err: ['PARLEY_DEADLINE must be a duration such as'],
  },
  ...['--latency', '--chunk-delay'].map(
    (flag): Row => ({
      ...refused,
      name: `P50 serve ${flag}`,
      argv: ['serve', flag, 'soon'],
      err: ['such as 500ms, 10s, 2m or 1h; a bare number is milliseconds'],
    }),
  ),
  ...['true', 'Yes', 'ON', '1'].map(
    (value): Row => ({
      ...good,
      name: `P51 ${value} in the environment`,
      argv: [...chat, '--dry-run'],
      env: { PARLEY_STREAM: value },
      script: () => {},
      reqs: 0,
      out: (out) => out.includes('?alt=sse'),
    }),
  ),
  ...['"no"', '0', '"Off"', 'false', '"0"'].map(
    (value): Row => ({
      ...good,
      name: `P51 ${value} in the profile file`,
      shell: `${profile(`{"stream":${value}}`)} parley chat hi`,
      files: ['cwd/conf/config.json'],
    }),
  ),
  ...['"maybe"', '2', 'null', '[]', '"__proto__"'].map(
    (value): Row => ({
      name: `P51 neither yes nor no: ${value}`,
      shell: `${profile(`{"stream":${value}}`)} parley chat hi`,
      code: 3,
      err: ["'stream' in profile 'default' must be true or false (or yes, no, on, off, 1, 0)"],
      files: ['cwd/conf/config.json'],
    }),
  ),
])
