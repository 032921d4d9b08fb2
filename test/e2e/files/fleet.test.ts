/** A fleet's day with `kill -9` in the middle, and that it finds bytes and events that are wrong. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { fleetArguments, runFleetDay } from '../../../tools/fleet/day.ts';
import { sequenceFault } from '../../../tools/fleet/events.ts';
import { openProcess } from '../../../tools/fleet/places.ts';
import { count, depth } from '../../support/depth.ts';

t.setTimeout(240_000);

/** Percentage of the whole day, at full depth. */
const PERCENT = 100;

// covers S173
t.test(
  'fleet: uploads, ranges, streams and applications survive kill -9: all bytes, all events once',
  async (t) => {
    const percent = count(PERCENT);
    const report = await runFleetDay({ percent, seed: depth.seed }, () => openProcess(`${t.testdir()}/data`));
    t.comment(JSON.stringify(report));
    t.same(report.faults, []);
    t.ok(report.broken > 0, 'the kill met clients at work');
    t.ok(report.delivered > report.events, 'events had many receivers');
  },
);

function changeFiles(dataPath: string): void {
  const root = join(dataPath, 'files');
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    if (!/\/[0-9]+$/.test(name)) continue;
    const bytes = readFileSync(join(root, name));
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    writeFileSync(join(root, name), bytes);
  }
}

// covers S173
t.test('fleet: a changed byte of a stored file is found', async (t) => {
  const dataPath = `${t.testdir()}/data`;
  const open = () => openProcess(dataPath, changeFiles);
  const { faults } = await runFleetDay({ percent: 1, seed: depth.seed }, open);
  t.match(faults.join('\n'), /first file 0.*: the bytes are others/);
});

// covers S173
t.test('fleet: events that are lost, doubled or out of order are found', async (t) => {
  const cases: [received: number[], fault: string | undefined][] = [
    [[1, 2, 3], undefined],
    [[1, 3], 'event 3 in place of 2'],
    [[1, 2], 'event undefined in place of 3'],
    [[1, 2, 2, 3], 'event 2 in place of 3'],
    [[2, 1, 3], 'event 2 in place of 1'],
    [[1, 2, 3, 3], '1 events more than were pushed'],
  ];
  for (const [received, fault] of cases) t.equal(sequenceFault(received, [1, 2, 3]), fault, received.join());
});

t.test('fleet: its command line', async (t) => {
  t.match(fleetArguments([]), { percent: 100, seed: Number, nodes: 1 });
  t.same(fleetArguments(['--percent', '7', '--seed', '3', '--nodes', '3']), {
    percent: 7,
    seed: 3,
    nodes: 3,
    bucket: false,
  });
  t.match(fleetArguments(['--nodes', '3', '--bucket']), { nodes: 3, bucket: true });
  t.equal(fleetArguments(['--bucket']), undefined, 'one process keeps files as its own tests say');
  for (const args of [
    ['--percent', '0'],
    ['--percent', '101'],
    ['--seed', 'a'],
    ['--nodes', '9'],
    ['more'],
    ['--seed', '0'],
  ])
    t.equal(fleetArguments(args), undefined, args.join(' '));
});
