/** Work in the background of features that a node of a cluster lacks: none of it begins. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { stopAfter } from '../../kit/close-after.ts';
import { OWNS_ALL, type Ownership } from '../../src/actors/runtime/ownership.ts';
import { OwnedWork } from '../../src/bootstrap/cluster/owned-work.ts';
import { openGatewayLog, startEventDelivery } from '../../src/bootstrap/events.ts';
import { startWebhooks } from '../../src/bootstrap/webhooks.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import type { Configuration } from '../../src/domain/config/configuration.ts';
import { featuresOf } from '../../src/domain/features.ts';
import { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { ModuleClient } from '../../src/io/modules/client.ts';
import { createLog, type LineSink } from '../../src/io/observability/log.ts';
import { cipher, createRig, type Rig } from '../support/events/webhooks.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const Modules = { chat: { url: 'http://127.0.0.1:1', key: 'the key of the chat module', poll: true } };
const Cluster = { url: 'postgres://127.0.0.1:1/x', name: 'a', secret: '0f'.repeat(32) };

/** The same configuration twice: of a gateway alone, and of a node. */
function configurations(t: Test): { alone: Configuration; node: Configuration } {
  const config = join(temporaryFolder(t), 'gatehouse.json');
  const load = (content: object) => {
    writeFileSync(config, JSON.stringify(content));
    const loaded = loadConfiguration({ config, sandbox: false, newJournal: false }, {}, []);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
    return loaded.configuration;
  };
  return { alone: load({ Modules }), node: load({ Modules, Cluster }) };
}

function partsOf({ actors }: Rig) {
  const settings = new LiveSettings();
  const shared = { actors: actors.system, settings, log: createLog('silent'), ownership: OWNS_ALL };
  return { ...shared, bounds: new SharedBounds(settings), sandbox: undefined };
}

t.test('events with Cluster: feeds are polled once every member can apply their rows', async (t) => {
  const { alone, node } = configurations(t);
  const rig = await createRig();
  const parts = partsOf(rig);
  const start = async (configuration: Configuration, ownership: Ownership) => {
    let polled = (): void => undefined;
    const firstPoll = new Promise<void>((resolve) => {
      polled = resolve;
    });
    const modules = {
      async call() {
        polled();
        return { ok: false, error: 'ModuleUnavailable', reason: 'away' };
      },
    } as unknown as ModuleClient;
    const eventLog = await openGatewayLog(rig.actors.system.administration, parts.settings, ownership);
    const delivery = startEventDelivery({ ...parts, ownership, configuration, modules, eventLog });
    t.teardown(async () => {
      await delivery.streams.drain();
      await delivery.stop();
    });
    return { delivery, firstPoll };
  };
  const work = new OwnedWork(OWNS_ALL);
  work.read([{ joined: true, figures: undefined }]);
  const ofNode = await start(node, work);
  const ofGateway = await start(alone, OWNS_ALL);
  await ofGateway.firstPoll;
  t.equal(ofGateway.delivery.counters().polls, 1);
  t.equal(ofNode.delivery.counters().polls, 0, 'although it was started before');
  work.read([]);
  await ofNode.firstPoll;
  t.equal(ofNode.delivery.counters().polls, 1);
});

t.test('webhooks with Cluster: deliveries begin once every member can apply their rows', async (t) => {
  const { alone, node } = configurations(t);
  const rig = await createRig();
  await rig.register('77');
  const sink: LineSink = {
    write: () => undefined,
    counters: () => ({ written: 0, dropped: 0 }),
    close: async () => undefined,
  };
  const start = (configuration: Configuration, ownership: Ownership) => {
    const own = { configuration, sink, cipher, eventLog: rig.log, telemetry: { tracing: undefined } };
    const place = { local: rig.actors.system, cluster: undefined, features: () => featuresOf() };
    return stopAfter(t, startWebhooks({ ...partsOf(rig), ...own, ...place, ownership }));
  };
  const work = new OwnedWork(OWNS_ALL);
  work.read([{ joined: true, figures: undefined }]);
  const ofNode = start(node, work);
  const ofGateway = start(alone, OWNS_ALL);
  ofNode.changed('77');
  await ofNode.ownershipChanged();
  while (ofGateway.counters().applications === 0) await new Promise((resolve) => setImmediate(resolve));
  t.equal(ofGateway.counters().applications, 1);
  t.equal(ofNode.counters().applications, 0, 'although it was started before');
  work.read([]);
  await ofNode.ownershipChanged();
  t.equal(ofNode.counters().applications, 1);
});
