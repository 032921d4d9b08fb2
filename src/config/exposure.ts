/** Checks a configuration for exposure: faults of production mode, and warnings of a start. */
import type { Configuration } from '../domain/config/configuration.ts';
import { isLoopback } from '../domain/limits/networks.ts';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './source.ts';

/** Faults of a file as written; `unasked`: the sandbox would run without its flag. */
export function productionFaults(file: unknown, unasked: boolean): readonly Fault[] {
  if (!isRecord(file) || file['Production'] !== true) return [];
  const { BaseUrl: baseUrl } = file;
  const faults: Fault[] = [];
  if (typeof baseUrl === 'string' && URL.canParse(baseUrl) && new URL(baseUrl).protocol !== 'https:')
    faults.push({ path: 'BaseUrl', message: 'is not https, as production mode asks' });
  if (unasked)
    faults.push({
      path: 'Production',
      message: 'the sandbox has demo money: name a configuration with --config, or ask for it with --sandbox',
    });
  return faults;
}

/** Text for the operator, and the part of the configuration that it is about. */
interface ExposureWarning {
  readonly detail: string;
  readonly host?: string;
  readonly webhookAllow?: readonly string[];
}

/** Deployments that are legal but rarely meant. */
export function exposureWarnings(configuration: Configuration): ExposureWarning[] {
  const { production, baseUrl, listen, trustedProxies, sandbox, webhookAllow } = configuration;
  const { host } = listen;
  const onLoopback = isLoopback(host);
  const warnings: ExposureWarning[] = [];
  if (production && sandbox)
    warnings.push({
      detail: 'production mode with the sandbox: modules without an address are simulated, with demo money',
    });
  if (production && baseUrl === undefined)
    warnings.push({
      detail: 'production mode without BaseUrl: addresses, origins and passkeys are those of localhost',
    });
  if (production && onLoopback && trustedProxies.length === 0)
    warnings.push({
      detail:
        'production mode on loopback with empty TrustedProxies: in limits and in Admin.allow all clients of a proxy have the address of the proxy',
      host,
    });
  // The defaults of development let webhooks reach this machine itself.
  if (!production && !onLoopback && webhookAllow.length > 0)
    warnings.push({
      detail:
        'development mode on a public address: webhooks may go to the networks of WebhookAllow; set Production or WebhookAllow',
      host,
      webhookAllow,
    });
  return warnings;
}
