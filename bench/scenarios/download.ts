/** Files out of the gateway, whole and in ranges of 4 KB, against nginx with sendfile and node:http. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subject } from '../measure/measure.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import {
  type Peer,
  startNginx,
  startPlainFiles,
  startTransferClient,
  type TransferClient,
  transferSubject,
} from '../subjects/transfers.ts';
import {
  CONCURRENT_FILE_BYTES,
  FILE_BYTES,
  type FileGateway,
  LARGE_FILE_BYTES,
  MEMORY_NOTE,
  MIB,
  NO_TARGET,
  startFileGateway,
} from './file-gateway.ts';
import { RawConnection } from './transfers/raw-connection.ts';

const STREAMS = 8;
const MANY = `gatehouse, ${STREAMS} at once`;
const BEHIND_NGINX = 'gatehouse, nginx sends';
const RANGE_BYTES = 4_096;
const RANGES = 1_024;
/** Fairness: so many bytes to each stream under this quota. */
const FAIR = { fileBytes: 5 * MIB, bytesPerSecond: 10 * MIB } as const;

export const download: Scenario = {
  name: 'download',
  summary:
    'files of 20 MiB by their code, one stream and eight, against nginx and node:http; MiB/s; fairness',
  unit: 'MiB',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: 'nginx', by: 'rate', atLeast: 0.75, row: 'download, one stream, against nginx' },
    { against: 'node:http', by: 'rate', reaches: 2.5, row: 'download, one stream, against node:http' },
    {
      of: MANY,
      against: `nginx, ${STREAMS} at once`,
      by: 'rate',
      atLeast: 1,
      row: 'downloads, eight, against nginx',
    },
    {
      of: MANY,
      against: `node:http, ${STREAMS} at once`,
      by: 'rate',
      reaches: 1.9,
      row: 'downloads, eight, against node:http',
    },
    {
      of: BEHIND_NGINX,
      against: 'nginx',
      by: 'rate',
      atLeast: 0.9,
      row: 'download behind nginx with X-Accel-Redirect, against nginx',
    },
  ],
  async run(bench) {
    const client = await startTransferClient(bench);
    const subjects: Subject[] = [];
    for (const build of bench.builds) {
      const gateway = await startFileGateway(bench, 1, {}, build);
      const own = [
        await ownFile(gateway, FILE_BYTES),
        await ownFile(gateway, CONCURRENT_FILE_BYTES),
      ] as const;
      subjects.push(...wholeFiles(bench, client, { name: 'gatehouse', ...gateway }, own));
    }
    if (bench.optionalPeer('nginx')) subjects.push(await behindNginx(bench, client));
    for (const [name, peer] of await peersOf(bench, FILE_BYTES)) {
      writeFileSync(join(peer.root, 'small'), contentOf(CONCURRENT_FILE_BYTES));
      const addresses = [`${peer.url}/file`, `${peer.url}/small`] as const;
      subjects.push(...wholeFiles(bench, client, { name, pids: [peer.pid] }, addresses));
    }
    const notes = [
      MEMORY_NOTE,
      `Rates are MiB/s; processor time is for one MiB. Files at once have ${CONCURRENT_FILE_BYTES / MIB} MiB each.`,
    ];
    const comparison = await bench.compare(subjects);
    notes.push(...(await fairness(bench, client)));
    return { comparison, notes };
  },
};

export const downloadRange: Scenario = {
  name: 'download-range',
  summary: 'ranges of 4 KB of a file of 100 MiB by its code, against nginx and node:http',
  noTarget: NO_TARGET,
  baseline: true,
  targets: [
    { against: 'nginx', by: 'rate', atLeast: 0.4, row: '4 KB ranges against nginx' },
    { against: 'node:http', by: 'rate', reaches: 4.5, row: '4 KB ranges against node:http' },
  ],
  async run(bench) {
    const subjects: Subject[] = [];
    for (const build of bench.builds) {
      const gateway = await startFileGateway(bench, 1, {}, build);
      const address = await ownFile(gateway, LARGE_FILE_BYTES);
      subjects.push(ranges(bench, `gatehouse${build.suffix}`, gateway.pids, address));
    }
    for (const [name, peer] of await peersOf(bench, LARGE_FILE_BYTES))
      subjects.push(ranges(bench, name, [peer.pid], `${peer.url}/file`));
    return { comparison: await bench.compare(subjects), notes: [] };
  },
};

function contentOf(fileBytes: number): Buffer {
  return Buffer.alloc(fileBytes, 'a file of the download bench; ');
}

async function peersOf(bench: Bench, fileBytes: number): Promise<[string, Peer][]> {
  const peers: [string, Peer][] = [];
  if (bench.optionalPeer('nginx')) peers.push(['nginx', await startNginx(bench)]);
  if (bench.optionalPeer('node-http')) peers.push(['node:http', await startPlainFiles(bench)]);
  for (const [, peer] of peers) writeFileSync(join(peer.root, 'file'), contentOf(fileBytes));
  return peers;
}

/** Uploads one; its address by code. */
async function ownFile({ url, cookies: [cookie = ''] }: FileGateway, fileBytes: number): Promise<string> {
  const connection = await RawConnection.open(url);
  const path = `/auth/v2/file/create_draft?fileName=bench.bin&fileSize=${fileBytes}`;
  const draft = await connection.ask('POST', path, { Cookie: cookie });
  const [, fileId, code] = /"result":"(\d+):([^"]+)"/.exec(draft.text) ?? [];
  if (fileId === undefined) throw new Error(`create_draft: ${draft.status} ${draft.text}`);
  const headers = { Cookie: cookie, 'Content-Type': 'application/octet-stream' };
  const { status, text } = await connection.ask(
    'POST',
    `/auth/v2/file/stream_upload/${fileId}`,
    headers,
    contentOf(fileBytes),
  );
  if (status !== 200) throw new Error(`stream_upload: ${status} ${text}`);
  connection.close();
  return `${url}/auth/v2/file/${code}`;
}

function wholeFiles(
  bench: Bench,
  client: TransferClient,
  { name, pids, suffix = '' }: { name: string; pids: readonly number[]; suffix?: string },
  [large, small]: readonly [large: string, small: string],
): Subject[] {
  const subject = (streams: number, address: string, fileBytes: number) => {
    const { origin, pathname } = new URL(address);
    const common = { kind: 'get', url: origin, path: pathname, fileBytes } as const;
    return transferSubject(bench, client, {
      name: (streams === 1 ? name : `${name}, ${streams} at once`) + suffix,
      pids,
      group: `${streams} at once`,
      plan: { ...common, cookies: [], connectionsPerFile: 1, streams },
      native: name === 'nginx',
    });
  };
  return [subject(1, large, FILE_BYTES), subject(STREAMS, small, CONCURRENT_FILE_BYTES)];
}

/** nginx in front, which sends the bytes of what the gateway authorized. Processor time is that of both. */
async function behindNginx(bench: Bench, client: TransferClient): Promise<Subject> {
  const behind = { header: 'X-Accel', prefix: '/_files/' };
  const configuration = { TrustedProxies: ['127.0.0.1'], SendfileBehind: behind };
  const gateway = await startFileGateway(bench, 1, {}, { suffix: '' }, configuration);
  const address = new URL(await ownFile(gateway, FILE_BYTES));
  const direct = await fetch(address, { headers: { 'X-Accel': '1' } });
  await direct.arrayBuffer();
  if (!direct.headers.has('x-accel-redirect')) throw new Error('the gateway did not hand over the file');
  const peer = await startNginx(bench, {
    http: `upstream gatehouse { server ${address.host}; keepalive 32; keepalive_requests 1000000; }`,
    server: `location / { proxy_pass http://gatehouse; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Accel 1; }
    location /_files/ { internal; alias ${gateway.folder}/; etag off; add_header ETag $upstream_http_etag; add_header Last-Modified $upstream_http_last_modified; }`,
  });
  return transferSubject(bench, client, {
    name: BEHIND_NGINX,
    pids: [...gateway.pids, peer.pid],
    group: BEHIND_NGINX,
    plan: {
      kind: 'get',
      url: peer.url,
      path: address.pathname,
      fileBytes: FILE_BYTES,
      cookies: [],
      connectionsPerFile: 1,
      streams: 1,
    },
  });
}

function ranges(bench: Bench, name: string, pids: readonly number[], address: string): Subject {
  const step = Math.floor(LARGE_FILE_BYTES / RANGES);
  const requests = Array.from({ length: RANGES }, (_, index) =>
    rawRequest('GET', address, { Range: `bytes=${index * step}-${index * step + RANGE_BYTES - 1}` }),
  );
  const { origin } = new URL(address);
  return bench.subject(name, pids, () => ({ url: origin, requests, expect: 'download bench', status: 206 }));
}

/** Streams that begin together under a quota: when each ends, against what the quota says. */
async function fairness(bench: Bench, client: TransferClient): Promise<string[]> {
  const gateway = await startFileGateway(bench, 1, { FileDownloadBytesPerSecond: FAIR.bytesPerSecond });
  const { origin, pathname } = new URL(await ownFile(gateway, FAIR.fileBytes));
  const notes: string[] = [];
  for (const streams of [2, STREAMS]) {
    const { streamEndsMs } = await client.run({
      kind: 'get',
      url: origin,
      path: pathname,
      fileBytes: FAIR.fileBytes,
      cookies: [],
      connectionsPerFile: 1,
      durationMs: 0,
      files: 1,
      streams,
    });
    const expectedMs = (streams * FAIR.fileBytes * 1_000) / FAIR.bytesPerSecond;
    const ends = [Math.min(...streamEndsMs), Math.max(...streamEndsMs)].map((ms) =>
      (ms / expectedMs).toFixed(3),
    );
    notes.push(
      `${streams} streams of 5 MiB under 10 MiB/s end after ${ends.join(' to ')} of ${expectedMs / 1_000} s, N x size / quota.`,
    );
  }
  return notes;
}
