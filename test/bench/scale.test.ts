import t from 'tap';
import {
  counted,
  linear,
  logarithmic,
  percentiles,
  type Scale,
  short,
} from '../../bench/report/html/scale.ts';

const labels = ({ ticks }: Scale) => ticks.map(({ label }) => label);

t.test('scales: round ticks, every value between start and end', async (t) => {
  t.same(labels(linear([3, 97])), ['0', '20', '40', '60', '80', '100']);
  t.equal(linear([50, 100]).at(50), 0.5);
  t.same(labels(linear([])), labels(linear([0])), 'nothing to show is no fault');
  t.same(labels(logarithmic([3, 40_000])), ['10', '100', '1000', '10k']);
  t.equal(logarithmic([1, 100]).at(10), 0.5);
  t.same(labels(logarithmic([0.6, 1.7])), ['0.5', '1', '2']);
  t.same(labels(counted(3)), ['1', '2', '3']);
  t.equal(counted(1).at(1), 0.5);
  for (const last of [2, 7, 25, 600]) t.ok(counted(last).ticks.length <= 8, `${last}`);
  const scale = percentiles();
  t.equal(scale.at(0), 0);
  t.equal(scale.at(100), 1);
  t.ok(Math.abs(scale.at(99) / scale.at(90) - 2) < 1e-9, 'each nine takes as much room');
  t.same([12_345, 1.5e6, 0.25, 950].map(short), ['12.3k', '1.5M', '0.25', '950']);
});

t.test('scales: all values of a logarithmic axis lie on it', async (t) => {
  for (const values of [
    [1e-3, 1e6],
    [7, 7],
    [2, 2.01],
    [999, 1_001],
    [0, 5],
  ]) {
    const scale = logarithmic(values);
    for (const value of values.filter((each) => each > 0)) {
      const at = scale.at(value);
      t.ok(at >= -1e-6 && at <= 1 + 1e-6, `${value} of ${values}: ${at}`);
    }
  }
});
