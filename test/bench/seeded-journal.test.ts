/** Journals of many accounts, written by the actors without HTTP. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { seedJournal } from '../../bench/subjects/seeded-journal.ts';
import { request } from '../../kit/agent.ts';
import { launchFor } from '../../kit/launch.ts';

t.test('seeded journal: a gateway on it knows every session and its owner', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seeded-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const dataPath = join(folder, 'data');
  const sessions = await seedJournal(dataPath, 40);
  t.equal(new Set(sessions.map(({ userId }) => userId)).size, 40);
  const gateway = await launchFor(t, { dataPath });
  for (const { userId, cookie } of [sessions[0], sessions[39]].filter((each) => each !== undefined)) {
    const { json } = await request(`${gateway.url}/auth/v1/info`, { headers: { Cookie: cookie } });
    t.equal(String(json['result']?.['session']?.['userId']), userId);
  }
});
