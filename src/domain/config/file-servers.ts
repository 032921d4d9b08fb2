/** Keys of the configuration file on storage servers (docs/storage.md), and their form in the program. */
import { boolean, object, optional, type Static, text } from '../schema.ts';
import { closed, url } from './observability.ts';

const secret = (description: string) => text({ minLength: 1, maxLength: 1024, writeOnly: true, description });

const bucketSchema = object(
  {
    Endpoint: url('Address of the object storage, such as https://s3.eu-central-1.amazonaws.com.'),
    Region: optional(
      text({
        pattern: '^[a-z0-9-]{1,64}$',
        form: 'up to 64 of a to z, 0 to 9 and "-"',
        description: 'Region of the signatures.',
      }),
    ),
    Bucket: text({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$',
      form: 'the name of a bucket',
      description: 'Exists; the gateway makes none.',
    }),
    Prefix: optional(
      text({
        pattern: '^(?:[A-Za-z0-9][A-Za-z0-9_.-]*/)*$',
        form: 'names that each end in /',
        maxLength: 256,
        description: 'Stands before the name of each object. Gateways that share a bucket need one each.',
      }),
    ),
    AccessKeyId: secret('Key of the account; best as env:NAME or file:/PATH.'),
    SecretAccessKey: secret('Secret of the key; best as env:NAME or file:/PATH.'),
    PathStyle: optional(
      boolean({
        description: 'The bucket is the first segment of paths instead of a part of the host name.',
      }),
    ),
    RedirectDownloads: optional(
      boolean({
        description:
          'Attachments of v2 that are asked for whole are answered with 307 to a link of 60 s, while FileDownloadBytesPerSecond is 0. Clients must reach the Endpoint.',
      }),
    ),
  },
  { ...closed, description: 'A bucket of an object storage that speaks S3, in place of `Host`.' },
);

export const fileServerSchema = object(
  { Host: optional(url('Storage server.')), S3: optional(bucketSchema) },
  closed,
);

export interface BucketConfiguration {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly prefix: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly pathStyle: boolean;
  readonly redirectDownloads: boolean;
}

/** One of both. */
export interface FileServerConfiguration {
  readonly Host?: string;
  readonly S3?: BucketConfiguration;
}

export const BUCKET_DEFAULTS = {
  'FileServers.NAME.S3.Region': 'us-east-1',
  'FileServers.NAME.S3.Prefix': '',
  'FileServers.NAME.S3.PathStyle': false,
  'FileServers.NAME.S3.RedirectDownloads': false,
} as const;

export function resolveFileServer({ Host, S3 }: Static<typeof fileServerSchema>): FileServerConfiguration {
  if (S3 === undefined) return Host === undefined ? {} : { Host };
  return {
    S3: {
      endpoint: S3.Endpoint,
      region: S3.Region ?? BUCKET_DEFAULTS['FileServers.NAME.S3.Region'],
      bucket: S3.Bucket,
      prefix: S3.Prefix ?? BUCKET_DEFAULTS['FileServers.NAME.S3.Prefix'],
      accessKeyId: S3.AccessKeyId,
      secretAccessKey: S3.SecretAccessKey,
      pathStyle: S3.PathStyle ?? BUCKET_DEFAULTS['FileServers.NAME.S3.PathStyle'],
      redirectDownloads: S3.RedirectDownloads ?? BUCKET_DEFAULTS['FileServers.NAME.S3.RedirectDownloads'],
    },
  };
}

interface FilePlace {
  readonly localFileStoragePath: string | undefined;
  readonly fileStagingPath: string | undefined;
  readonly fileServers: Readonly<Record<string, FileServerConfiguration>>;
}

/** All files are in buckets, and nothing is staged: nodes of a cluster need no folder that they share. */
export function areInBuckets({ localFileStoragePath, fileStagingPath, fileServers }: FilePlace): boolean {
  const servers = Object.values(fileServers);
  const hasFolder = localFileStoragePath !== undefined || fileStagingPath !== undefined;
  return !hasFolder && servers.length > 0 && servers.every(({ S3 }) => S3 !== undefined);
}

/** Each node may have a key of its own. */
export function withoutKeys(server: FileServerConfiguration): object {
  if (server.S3 === undefined) return server;
  const { accessKeyId: _, secretAccessKey: __, ...shared } = server.S3;
  return { S3: shared };
}
