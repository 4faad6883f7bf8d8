/** A terminal's way of showing pictures among its text. */
export type PictureProtocol = 'kitty' | 'iterm2'

/** Finds it from what the terminal says about itself, which is not reliable inside a multiplexer. */
export function findPictureProtocol(
  env: Readonly<Record<string, string | undefined>>,
): PictureProtocol | undefined {
  const { TERM = '', TERM_PROGRAM = '', LC_TERMINAL, KITTY_WINDOW_ID, TMUX } = env
  if (TMUX || /^(screen|tmux)/.test(TERM)) return undefined
  if (KITTY_WINDOW_ID || /^xterm-(kitty|ghostty)$/.test(TERM) || /^ghostty$/i.test(TERM_PROGRAM))
    return 'kitty'
  return /^(iTerm\.app|WezTerm)$/.test(TERM_PROGRAM) || LC_TERMINAL === 'iTerm2' ? 'iterm2' : undefined
}

/** Larger pictures would only slow the terminal down. Bytes. */
const largest = 16 * 1024 * 1024

/** The longest piece that the Kitty protocol accepts, in characters of base64. */
const pieceLength = 4096

/** The sequence that shows a picture, or `undefined` if there is none: the Kitty protocol accepts PNG only. */
export function renderPicture(
  protocol: PictureProtocol,
  bytes: Uint8Array,
  extension: string,
): string | undefined {
  if (bytes.length > largest || (protocol === 'kitty' && extension !== 'png')) return undefined
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  if (protocol === 'iterm2') return `\x1b]1337;File=inline=1;size=${bytes.length}:${base64}\x07\n`
  const pieces = base64.match(new RegExp(`.{1,${pieceLength}}`, 'g')) ?? []
  return `${pieces
    .map((piece, index) => {
      // q=2: the terminal must not answer, as nobody would read it.
      const head = index === 0 ? 'a=T,f=100,q=2,' : ''
      return `\x1b_G${head}m=${index < pieces.length - 1 ? 1 : 0};${piece}\x1b\\`
    })
    .join('')}\n`
}
