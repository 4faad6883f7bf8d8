type PictureProtocol = 'kitty' | 'iterm2'

type Environment = Readonly<Record<string, string | undefined>>

export function findPictureProtocol(env: Environment, isWanted = false): PictureProtocol | undefined {
  const { TERM = '', TERM_PROGRAM = '', LC_TERMINAL, KITTY_WINDOW_ID, TMUX } = env
  // tmux and screen do not forward pictures, so no picture is shown.
  if (TMUX || /^(dumb|screen|tmux)/.test(TERM)) return undefined
  if (KITTY_WINDOW_ID || /^xterm-(kitty|ghostty)$/.test(TERM) || /^ghostty$/i.test(TERM_PROGRAM))
    return 'kitty'
  const isKnown = /^(iTerm\.app|WezTerm)$/.test(TERM_PROGRAM) || LC_TERMINAL === 'iTerm2'
  return isKnown || isWanted ? 'iterm2' : undefined
}

/** Larger pictures slow the terminal down. */
const maxPictureBytes = 16 * 1024 * 1024

/** Limit of the Kitty protocol, in base64 characters. */
const maxPieceLength = 4096

export function findPictureProblem(
  protocol: PictureProtocol,
  bytes: Uint8Array,
  extension: string,
): string | undefined {
  if (bytes.length > maxPictureBytes) return 'it is larger than 16 MiB'
  return protocol === 'kitty' && extension !== 'png'
    ? `this terminal shows only PNG, and the image is ${extension}`
    : undefined
}

export function renderPicture(protocol: PictureProtocol, bytes: Uint8Array): string {
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
  if (protocol === 'iterm2') return `\x1b]1337;File=inline=1;size=${bytes.length}:${base64}\x07\n`
  const pieces = base64.match(new RegExp(`.{1,${maxPieceLength}}`, 'g')) ?? []
  return `${pieces
    .map((piece, index) => {
      // `q=2` disables the terminal's reply, because parley does not read replies.
      const head = index === 0 ? 'a=T,f=100,q=2,' : ''
      return `\x1b_G${head}m=${index < pieces.length - 1 ? 1 : 0};${piece}\x1b\\`
    })
    .join('')}\n`
}
