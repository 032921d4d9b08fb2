/** Gateways with the modules of the sandbox that the page tests of a suite share: no test changes what others see. */
import { launch, NO_LIMITS, type RunningGateway } from '../../../kit/launch.ts';
import { packConnector } from '../../../tools/packaging/pack-connector.ts';
import { shared } from '../shared.ts';

const stop = (gateway: RunningGateway) => gateway.stop();

/** With the default limits, the profile `shop` and the connector. */
export const defaultGateway = shared(() => {
  packConnector();
  const McpProfiles = { shop: { tools: ['wallet'], title: 'Shop' } };
  return launch({ args: ['--sandbox'], configuration: { McpProfiles } });
}, stop);

export const unlimitedGateway = shared(
  () => launch({ args: ['--sandbox'], configuration: { Settings: NO_LIMITS } }),
  stop,
);
