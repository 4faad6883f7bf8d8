import { describe, expect, test } from 'vitest'
import { gif, image, inline, jpeg, parts, png, svg, webp, zip } from './image.ts'

describe('image formats', () => {
  test.each([
    ['a PNG', 'png', png(), 'image/png'],
    ['a PNG without a MIME type', 'png', Buffer.from('\x89PNG\r\n\x1a\n and no more', 'latin1'), ''],
    ['a JPEG', 'jpg', jpeg, 'image/jpeg'],
    ['a GIF', 'gif', gif, 'image/gif'],
    ['a WebP', 'webp', webp, 'image/webp'],
    ['an SVG', 'svg', svg, 'image/svg+xml'],
    ['an AVIF', 'avif', Buffer.from('\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf', 'latin1'), 'image/avif'],
    ['a HEIC', 'heic', Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'), 'image/heic'],
    ['a TIFF', 'tiff', Buffer.from('II*\0\x08\0\0\0\0\0\0\0\0\0', 'latin1'), 'image/tiff'],
    ['a BMP', 'bmp', Buffer.from('BM\x1a\0\0\0\0\0\0\0\x1a\0\0\0', 'latin1'), 'image/bmp'],
    ['unknown bytes of the MIME type image/jpg', 'jpg', Buffer.from('unknown bytes'), 'image/jpg'],
  ])('I08: image saves %s with the extension %s', async (_, extension, bytes, mimeType) => {
    const ended = await image(['x'], parts(inline(bytes, mimeType)))
    expect(ended).toMatchObject({ code: 0, out: `x.${extension}\n`, err: '', files: [`x.${extension}`] })
  })

  test.each([
    ['unknown bytes and no type', Buffer.from('who knows'), ''],
    ['an archive with an image type', zip, 'image/png'],
    ['SVG with an unknown type', svg, 'image/x-unknown'],
  ])(
    'I08: image exits with 8 and saves the bytes in the temporary folder if the answer has %s (I09)',
    async (_, bytes, mimeType) => {
      const ended = await image(['x'], parts(inline(bytes, mimeType)))
      expect(ended).toMatchObject({ code: 8, out: '', files: [] })
      expect(ended.saved).toEqual([expect.stringMatching(/^parley-[\w-]+\.bin$/)])
      expect(ended.err).toContain(ended.saved[0])
    },
  )

  test('image -o FILE keeps the name, and prints a note if its extension does not match the format', async () => {
    const wrong = await image(['x', '-o', 'a.jpg'])
    expect(wrong).toMatchObject({ code: 0, out: 'a.jpg\n', files: ['a.jpg'] })
    expect(wrong.err).toContain('a.jpg: its extension does not match')
    const reported = await image(['x', '-o', 'a.webp', '--report', 'r.json'])
    expect(reported.err).toContain('a.webp: its extension does not match: the image is png')
    expect(JSON.parse(reported.read('r.json').toString())).toMatchObject({ files: ['a.webp'] })
    for (const name of ['a', 'b.PNG'])
      expect(await image(['x', '-o', name])).toMatchObject({ out: `${name}\n`, err: '' })
    expect((await image(['x', '-o', 'a.jpeg'], parts(inline(jpeg, 'image/jpeg')))).err).toBe('')
  })
})
