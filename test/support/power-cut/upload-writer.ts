/**
 * `upload-writer.js FOLDER`: uploads all sample files at once and prints `opened USER`, `chunk USER N`, `file USER` after
 * each answer. The tests trace its system calls.
 */
import { writeSync } from 'node:fs';
import { openUploads, UPLOADS } from './uploads.ts';

const [folder = ''] = process.argv.slice(2);
const uploads = await openUploads(folder);
const tell = (line: string) => writeSync(1, `${line}\n`);
await Promise.all(
  UPLOADS.map(async ([userId, file]) => {
    await uploads.init(userId, file);
    tell(`opened ${userId}`);
    // The last chunk first: the part then is longer than what is written.
    for (const at of [...file.chunks.keys()].reverse()) {
      const { fileId } = await uploads.part(userId, file, at);
      tell(fileId === null ? `chunk ${userId} ${at}` : `file ${userId}`);
    }
  }),
);
await uploads.close();
