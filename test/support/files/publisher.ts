/**
 * A process of its own that publishes parts of a staging folder to a bucket, or joins pieces in it, as a run of the gateway
 * does after a start. It says which are done, and is killed by its test. `node publisher.js JSON`.
 */
import type { BucketConfiguration } from '../../../src/domain/config/file-servers.ts';
import type { FileKey } from '../../../src/domain/files/files.ts';
import type { FileSegment } from '../../../src/domain/files/segments.ts';
import { RemoteStorage } from '../../../src/io/files/storage/remote.ts';
import { inlineWorkers } from '../account.ts';

export interface PublisherPlan {
  readonly bucket: BucketConfiguration;
  readonly staging: string;
  /** The files are in pieces of this log, not in parts. */
  readonly directLogId?: string | undefined;
  readonly files: readonly PublishedFile[];
}

export interface PublishedFile {
  readonly key: FileKey;
  readonly sizeBytes: number;
  readonly pieces?: readonly FileSegment[];
}

const { bucket, staging, directLogId, files }: PublisherPlan = JSON.parse(process.argv[2] ?? '');
const storage = new RemoteStorage({
  workers: inlineWorkers().workers,
  servers: { 0: { S3: bucket } },
  staging,
  directLogId,
  onFault: (message) => process.send?.({ fault: message }),
});
await storage.probe();
await Promise.all(
  files.map(async ({ key, sizeBytes, pieces }) => {
    if (pieces === undefined) await storage.publish(key, sizeBytes);
    else {
      await storage.publishSegments(key, pieces);
      await storage.removeSegments(key, []);
    }
    process.send?.({ done: key.fileId });
  }),
);
await storage.close();
process.disconnect();
