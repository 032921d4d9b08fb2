/**
 * A process of its own that publishes parts of a staging folder to a bucket, as a run of the gateway does after a start. It
 * says which are done, and is killed by its test. `node publisher.js JSON`.
 */
import type { BucketConfiguration } from '../../../src/domain/config/file-servers.ts';
import type { FileKey } from '../../../src/domain/files/files.ts';
import { RemoteStorage } from '../../../src/io/files/storage/remote.ts';
import { inlineWorkers } from '../account.ts';

export interface PublisherPlan {
  readonly bucket: BucketConfiguration;
  readonly staging: string;
  readonly files: readonly { readonly key: FileKey; readonly sizeBytes: number }[];
}

const { bucket, staging, files }: PublisherPlan = JSON.parse(process.argv[2] ?? '');
const storage = new RemoteStorage({
  workers: inlineWorkers().workers,
  servers: { 0: { S3: bucket } },
  staging,
  onFault: (message) => process.send?.({ fault: message }),
});
await storage.probe();
await Promise.all(
  files.map(async ({ key, sizeBytes }) => {
    await storage.publish(key, sizeBytes);
    process.send?.({ done: key.fileId });
  }),
);
await storage.close();
process.disconnect();
