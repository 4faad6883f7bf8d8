import type { Context } from '../../context.ts'
import { findPictureProtocol, renderPicture } from '../../io/picture.ts'

/**
 * Makes a function that shows a saved image: on a terminal that supports it, or with `--preview` on any terminal. Never in a pipe.
 */
export function createShow(
  { host, output, note }: Context,
  isWanted: boolean | undefined,
): (bytes: Uint8Array, extension: string) => Promise<void> {
  const isDumb = host.env.TERM === 'dumb'
  const protocol = isDumb ? undefined : (findPictureProtocol(host.env) ?? (isWanted ? 'iterm2' : undefined))
  if (isWanted && !output.isTerminal) note('--preview: stdout is not a terminal, nothing is shown')
  else if (isWanted && isDumb) note('--preview: the terminal shows no pictures (TERM=dumb), nothing is shown')
  if (!output.isTerminal || isWanted === false || !protocol) return async () => {}
  return async (bytes, extension) => {
    const picture = renderPicture(protocol, bytes, extension)
    if (picture === undefined) {
      if (isWanted) note('this image cannot be shown here: it is too large, or not a PNG')
      return
    }
    await output.write(picture)
  }
}
