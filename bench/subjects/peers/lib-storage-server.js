/** node:http that passes the body of a PUT to @aws-sdk/lib-storage. `node lib-storage-server.js STORAGE`. */
import { createServer } from 'node:http';
import { S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';

const [endpoint] = process.argv.slice(2);
const client = new S3Client({
  region: 'eu-central-1',
  endpoint,
  forcePathStyle: true,
  credentials: { accessKeyId: 'AKEXAMPLE', secretAccessKey: 'a/secret+key' },
  // The storage reads no chunked bodies.
  requestChecksumCalculation: 'WHEN_REQUIRED',
});
const server = createServer((request, response) => {
  const params = { Bucket: 'files', Key: request.url?.slice(1), Body: request };
  // The gateway has as many parts of a file at once.
  new Upload({ client, params, partSize: 8 * 1024 * 1024, queueSize: 2 }).done().then(
    () => response.writeHead(201).end(),
    (error) => {
      process.stderr.write(`lib-storage: ${error}\n`);
      response.writeHead(502).end();
    },
  );
});
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${server.address().port}` }));
process.on('disconnect', () => process.exit(0));
