/** What a start says of a deployment that others reach: faults of production mode, and warnings. */
import type { Configuration } from '../domain/config/configuration.ts';
import { isLoopback } from '../domain/limits/networks.ts';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './environment.ts';

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

/** What is unusual and may be meant: each with the fields of its log line. */
export function exposureWarnings(configuration: Configuration): { fields: object; message: string }[] {
  const { production, baseUrl, listen, trustedProxies, sandbox, webhookAllow } = configuration;
  const onLoopback = isLoopback(listen.host);
  const warnings = [
    {
      holds: production && sandbox,
      fields: {},
      message: 'production mode with the sandbox: modules without an address are stand-ins with demo money',
    },
    {
      holds: production && baseUrl === undefined,
      fields: {},
      message: 'production mode without BaseUrl: addresses, origins and passkeys are those of localhost',
    },
    {
      holds: production && onLoopback && trustedProxies.length === 0,
      fields: { host: listen.host },
      message:
        'production mode on loopback with empty TrustedProxies: clients of a proxy have its address, one for all, in limits and in Admin.allow',
    },
    {
      // The defaults of development let webhooks reach this machine itself.
      holds: !production && !onLoopback && webhookAllow.length > 0,
      fields: { host: listen.host, webhookAllow },
      message:
        'not in production mode, but reachable from elsewhere: webhooks may go to these ranges; set Production or WebhookAllow',
    },
  ];
  return warnings.filter(({ holds }) => holds).map(({ fields, message }) => ({ fields, message }));
}
