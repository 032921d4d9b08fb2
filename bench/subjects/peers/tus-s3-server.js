/** @tus/server with its S3 store, as its documentation shows it. `node tus-s3-server.js STORAGE`. */
import { createServer } from 'node:http';
import { S3Store } from '@tus/s3-store';
import { Server } from '@tus/server';

const [endpoint] = process.argv.slice(2);
const s3ClientConfig = {
  bucket: 'files',
  region: 'eu-central-1',
  endpoint,
  forcePathStyle: true,
  credentials: { accessKeyId: 'AKEXAMPLE', secretAccessKey: 'a/secret+key' },
  // The storage reads no chunked bodies.
  requestChecksumCalculation: 'WHEN_REQUIRED',
};
const datastore = new S3Store({ partSize: 8 * 1024 * 1024, s3ClientConfig });
const tus = new Server({ path: '/files', datastore });
const server = createServer((request, response) => void tus.handle(request, response));
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${server.address().port}` }));
process.on('disconnect', () => process.exit(0));
