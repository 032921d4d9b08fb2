/** Observes one suite: routes and errors (recorder.cts), settings with another value than their default, and passed tests. */
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Base, TestBase } from 'tap';
import { PRELOAD_VARIABLE } from '../../kit/launch.ts';
import {
  LiveSettings,
  SETTINGS,
  type SettingName,
  type SettingValue,
} from '../../src/domain/settings/settings.ts';

interface Observation {
  /** `path`: of the test file whose tests run from now on. */
  begin(path: string): void;
  /** `path`: of a test file that this run leaves out. */
  leave(path: string): void;
  end(): void;
}

const RECORDER = fileURLToPath(new URL('./recorder.cjs', import.meta.url));

export function observeSuite(name: string, report: TestBase): Observation {
  process.env[PRELOAD_VARIABLE] = RECORDER;
  const { note } = createRequire(import.meta.url)(RECORDER) as {
    note(...fields: readonly string[]): void;
  };
  let file = '';
  const begin = (path: string) => {
    file = `test/${path.replace(/\.js$/, '.ts')}`;
  };
  note('suite', name);
  observeSettings((setting) => note('setting', setting));
  observeTests(report, [], (titles) => note('passed', file, ...titles));
  return {
    begin,
    leave(path) {
      begin(path);
      note('left', file);
    },
    end: () => note('end', name),
  };
}

/** Calls `read` for settings whose value the program reads, if it is not the default. */
function observeSettings(read: (setting: SettingName) => void): void {
  const known = new Set<SettingName>();
  const get: (this: LiveSettings, name: SettingName) => SettingValue = LiveSettings.prototype.get;
  LiveSettings.prototype.get = function observed(this: LiveSettings, name: SettingName): SettingValue {
    const value = get.call(this, name);
    // Programs read settings with every request: the first read of each is enough.
    if (value !== SETTINGS[name].default && !known.has(name)) {
      known.add(name);
      read(name);
    }
    return value;
  } as typeof LiveSettings.prototype.get;
}

/** Calls `passed` with the titles of each test that ended well, those of the tests around it before. */
function observeTests(
  test: TestBase,
  around: readonly string[],
  passed: (titles: readonly string[]) => void,
): void {
  const observe = (each: Base) => {
    if ('subtests' in each) observeTests(each as TestBase, [...around, each.name], passed);
  };
  test.on('subtestAdd', observe);
  test.on('subtestEnd', (each: Base) => {
    if (each.passing()) passed([...around, each.name]);
  });
}
