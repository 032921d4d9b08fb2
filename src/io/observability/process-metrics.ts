/** Metrics of the process and of Node.js, as prom-client collects them, under names and labels that promtool accepts. */
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client';
import { counter, gauge, histogram, type MetricDefinition, openLabel } from './metric-definition.ts';

const type = openLabel('type');
const space = openLabel('space');

export const PROCESS_METRICS = {
  gatehouse_process_cpu_user_seconds_total: counter('seconds', 'Processor time in user mode.'),
  gatehouse_process_cpu_system_seconds_total: counter('seconds', 'Processor time in the kernel.'),
  gatehouse_process_cpu_seconds_total: counter('seconds', 'Processor time.'),
  gatehouse_process_start_time_seconds: gauge('seconds', 'Start of the process since the Unix epoch.'),
  gatehouse_process_resident_memory_bytes: gauge('bytes', 'Resident memory.'),
  gatehouse_process_virtual_memory_bytes: gauge('bytes', 'Virtual memory.'),
  gatehouse_process_heap_bytes: gauge('bytes', 'Data segment of the process.'),
  gatehouse_process_open_fds: gauge('descriptors', 'Open file descriptors.'),
  gatehouse_process_max_fds: gauge('descriptors', 'Largest number of open file descriptors.'),
  gatehouse_nodejs_eventloop_lag_seconds: gauge('seconds', 'Delay of the event loop at the scrape.'),
  gatehouse_nodejs_eventloop_lag_min_seconds: gauge('seconds', 'Least delay since the scrape before.'),
  gatehouse_nodejs_eventloop_lag_max_seconds: gauge('seconds', 'Greatest delay since the scrape before.'),
  gatehouse_nodejs_eventloop_lag_mean_seconds: gauge('seconds', 'Mean delay since the scrape before.'),
  gatehouse_nodejs_eventloop_lag_stddev_seconds: gauge('seconds', 'Standard deviation of the delays.'),
  gatehouse_nodejs_eventloop_lag_p50_seconds: gauge('seconds', 'Median delay since the scrape before.'),
  gatehouse_nodejs_eventloop_lag_p90_seconds: gauge('seconds', '90th percentile of the delays.'),
  gatehouse_nodejs_eventloop_lag_p99_seconds: gauge('seconds', '99th percentile of the delays.'),
  gatehouse_nodejs_active_resources: gauge('resources', 'Resources that keep the event loop alive.', type),
  gatehouse_nodejs_active_handles: gauge('handles', 'Active handles of libuv.', type),
  gatehouse_nodejs_active_requests: gauge('requests', 'Active requests of libuv.', type),
  gatehouse_nodejs_heap_size_total_bytes: gauge('bytes', 'Size of the JavaScript heap.'),
  gatehouse_nodejs_heap_size_used_bytes: gauge('bytes', 'Used part of the JavaScript heap.'),
  gatehouse_nodejs_external_memory_bytes: gauge('bytes', 'Memory of buffers outside the heap.'),
  gatehouse_nodejs_heap_space_size_total_bytes: gauge('bytes', 'Size of each heap space.', space),
  gatehouse_nodejs_heap_space_size_used_bytes: gauge('bytes', 'Used part of each heap space.', space),
  gatehouse_nodejs_heap_space_size_available_bytes: gauge('bytes', 'Free part of each heap space.', space),
  gatehouse_nodejs_version_info: gauge(
    'constant 1',
    'Version of Node.js.',
    openLabel('version'),
    openLabel('major'),
    openLabel('minor'),
    openLabel('patch'),
  ),
  gatehouse_nodejs_gc_duration_seconds: histogram('seconds', 'Duration of garbage collections.', type),
};

/** Adds the declared metrics to `registry`. Those of prom-client that are not declared here are left out. */
export function registerProcessMetrics(registry: Registry): void {
  const collected = new Registry();
  collectDefaultMetrics({ register: collected, prefix: 'gatehouse_' });
  for (const [name, { help }] of Object.entries<MetricDefinition>(PROCESS_METRICS)) {
    const metric = collected.getSingleMetric(name);
    // Descriptors and virtual memory: on Linux alone.
    if (metric === undefined) continue;
    const get = async () => {
      const { values, ...rest } = await metric.get();
      return { ...rest, help, values: values.map((value) => ({ ...value, labels: renamed(value.labels) })) };
    };
    registry.registerMetric({ name, get } as unknown as Metric);
  }
}

/** prom-client calls the type of a garbage collection `kind`. */
function renamed({ kind, ...labels }: Partial<Record<string, string | number>>) {
  return kind === undefined ? labels : { ...labels, type: kind };
}
