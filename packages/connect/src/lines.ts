/** Messages out of byte streams: lines of standard input, and the data of an event stream. */

/** A line that is longer is skipped to its end. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** Each line without its end; `undefined` for one that is too long. The rest without an end counts as a line. */
export async function* readLines(
  input: AsyncIterable<Uint8Array | string>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let size = 0;
  const take = (): string | undefined => {
    const line = size > bytesMax ? undefined : Buffer.concat(pieces).toString('utf8').replace(/\r$/, '');
    pieces = [];
    size = 0;
    return line;
  };
  const add = (piece: Buffer) => {
    size += piece.length;
    if (size > bytesMax) pieces = [];
    else pieces.push(piece);
  };
  for await (const chunk of input) {
    let rest = Buffer.from(chunk as Uint8Array);
    for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10)) {
      add(rest.subarray(0, end));
      yield take();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) add(rest);
  }
  if (size > 0) yield take();
}

/** The data of each event; lines of one event are joined as the HTML standard says. */
export async function* readEvents(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of readLines(input)) {
    if (line === undefined) data = [];
    else if (line === '') {
      if (data.length > 0) yield data.join('\n');
      data = [];
    } else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''));
  }
}
