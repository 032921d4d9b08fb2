/** Output that all commands share: version, exit codes, plain lines, faults of a configuration. */
import { readFileSync } from 'node:fs';
import { checkCatalog } from '../bootstrap/served-catalog.ts';
import { checkTls } from '../bootstrap/tls.ts';
import { clusterFaults } from '../config/cluster.ts';
import { productionFaults } from '../config/exposure.ts';
import {
  type ConfigurationResult,
  type FileCheck,
  type Flags,
  loadConfiguration,
  type PlacedFault,
  processEnvironment,
} from '../config/load.ts';
import type { Configuration } from '../domain/config/configuration.ts';

/** Exit codes, with the names and numbers of sysexits.h. `unavailable`: a port is taken, or no gateway answers. */
export const EXIT = { done: 0, usage: 64, unavailable: 69, storage: 70, configuration: 78 } as const;

/** A command needs a running gateway, and none answers. */
export class NoGateway extends Error {}

/** Only package.json has the version. */
export const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string };

// A reader that left (`gatehouse … | head -1`, a supervisor that closed the pipe) is no fault of this program.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

export function print(text: string): void {
  process.stdout.write(text);
}

/** Writes one plain line to standard error and ends the program. */
export function end(code: number, message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

export function endWithFaults(faults: readonly PlacedFault[]): never {
  const lines = faults.map(
    ({ path, message, place }) =>
      `configuration: ${path === '' ? '' : `${path}: `}${message}${place === undefined ? '' : ` (${place})`}`,
  );
  return end(EXIT.configuration, lines.join('\n'));
}

/** Schema, values, certificates and custom tools are checked together, so that one start reports all errors. */
export function load(flags: Flags, further: readonly FileCheck[] = []): ConfigurationResult {
  const production = (file: unknown, sandbox: boolean) => productionFaults(file, sandbox && !flags.sandbox);
  const checks = [checkTls, checkCatalog, production, clusterFaults, ...further];
  return loadConfiguration(flags, processEnvironment(), checks);
}

export function loadOrEnd(flags: Flags, further: readonly FileCheck[] = []): Configuration {
  const result = load(flags, further);
  return result.ok ? result.configuration : endWithFaults(result.faults);
}
