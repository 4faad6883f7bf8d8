import { expect, test } from 'vitest'
import { gif, image, inline, jpeg, parts, png, svg, webp, zip } from './image.ts'

test.each([
  ['a PNG without a MIME type', 'png', png(), ''],
  ['a JPEG', 'jpg', jpeg, 'image/jpeg'],
  ['a GIF', 'gif', gif, 'image/gif'],
  ['a WebP', 'webp', webp, 'image/webp'],
  ['an SVG', 'svg', svg, 'image/svg+xml'],
  ['an AVIF', 'avif', Buffer.from('\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf', 'latin1'), 'image/avif'],
  ['a HEIC', 'heic', Buffer.from('\0\0\0\x18ftypheic\0\0\0\0mif1heic', 'latin1'), 'image/heic'],
  ['a TIFF', 'tiff', Buffer.from('II*\0\x08\0\0\0\0\0\0\0\0\0', 'latin1'), 'image/tiff'],
  ['a BMP', 'bmp', Buffer.from('BM\x1a\0\0\0\0\0\0\0\x1a\0\0\0', 'latin1'), 'image/bmp'],
])('I08: image saves %s with the extension %s', async (_, extension, bytes, mimeType) => {
  const ended = await image(['x'], parts(inline(bytes, mimeType)))
  expect(ended).toMatchObject({ code: 0, out: `x.${extension}\n`, err: '', files: [`x.${extension}`] })
})

test.each([
  ['unknown bytes and no type', Buffer.from('who knows'), ''],
  ['an archive with an image type', zip, 'image/png'],
  ['SVG with an unknown type', svg, 'image/x-unknown'],
  ['SVG with the type of a PNG', svg, 'image/png'],
  ['a web page with the type of SVG', Buffer.from('\n<!DOCTYPE html><p>'), 'image/svg+xml'],
  ['a web page with the type of a JPEG', Buffer.from('<!doctype html><p>é'), 'image/jpeg'],
])('I08, I09: image exits with 8 and saves %s in the temporary folder', async (_, bytes, mimeType) => {
  const ended = await image(['x'], parts(inline(bytes, mimeType)))
  expect(ended).toMatchObject({ code: 8, out: '', files: [] })
  expect(ended.saved).toEqual([expect.stringMatching(/^parley-[\w-]+\.bin$/)])
  expect(ended.err).toContain(ended.saved[0])
})

/** A JPEG with another JPEG in an APP1 segment, and with a scan. */
const withPreview = Buffer.concat([
  jpeg.subarray(0, -2),
  Buffer.from([0xff, 0xff, 0xe1, 0, jpeg.length + 2]),
  jpeg,
  Buffer.from('ffda0003000102ffd9', 'hex'),
])

const unknown = 'its format is unknown, so the image may be damaged'
const cut = (format: string) => `the ${format} has no end, so it may be cut off`
test.each([
  ['bytes of no known format', 'png', Buffer.alloc(500), 'image/png', unknown],
  ['bytes of no known format', 'jpg', Buffer.from([1, 0, 2]), 'image/jpg', unknown],
  ['the first half of a PNG', 'png', png().subarray(0, 40), 'image/png', cut('PNG')],
  ['a JPEG without its last byte', 'jpg', jpeg.subarray(0, -1), 'image/jpeg', cut('JPEG')],
  ['a cut JPEG with a preview', 'jpg', withPreview.subarray(0, -2), 'image/jpeg', cut('JPEG')],
  ['a GIF without its last byte', 'gif', gif.subarray(0, -1), 'image/gif', cut('GIF')],
  ['a WebP without its last byte', 'webp', webp.subarray(0, -1), 'image/webp', cut('WebP')],
])('image saves %s as .%s with a warning', async (_, extension, bytes, mimeType, problem) => {
  const world = parts(inline(bytes, mimeType))
  const err = `parley: x.${extension}: ${problem}\n`
  expect(await image(['x', '-q'], world)).toMatchObject({ code: 0, out: `x.${extension}\n`, err })
  const printed = await image(['x', '-q', '-o', '-'], world)
  expect([printed.code, printed.err]).toEqual([0, `parley: stdout: ${problem}\n`])
  const batch = await image(['--batch', '-'], { ...world, stdin: '"x"\n' })
  const warning = `000001-x.${extension}: ${problem}`
  expect(JSON.parse(batch.out)).toMatchObject({ ok: true, files: [`000001-x.${extension}`], warning })
})

test.each([
  ['a PNG', png()],
  ['a JPEG', jpeg],
  ['a JPEG with a preview', withPreview],
  ['a WebP', webp],
])('image prints no warning if other data follows the end of %s', async (_, bytes) => {
  const longer = Buffer.concat([bytes, Buffer.alloc(5000, 'data')])
  expect(await image(['x'], parts(inline(longer, '')))).toMatchObject({ code: 0, err: '' })
})

test('image -o FILE keeps the name, and prints a note if its extension means another format', async () => {
  for (const name of ['a.JPG', 'a', 'b.PNG', 'c.v2']) {
    const err = name === 'a.JPG' ? 'parley: a.JPG: the image has the format png\n' : ''
    const saved = { code: 0, out: `${name}\n`, files: [name] }
    expect(await image(['x', '-o', name])).toMatchObject({ ...saved, err })
    expect(await image(['x', '-o', name, '-q'])).toMatchObject({ ...saved, err: '' })
  }
})
