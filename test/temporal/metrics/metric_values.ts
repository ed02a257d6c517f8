import type { Registry } from 'prom-client';

/** The value of each series of a metric, by its labels in the order of their names, for example `model=events`. */
export async function valuesOf(metrics: Registry, name: string): Promise<Record<string, number>> {
  const found = (await metrics.getMetricsAsJSON()).find((metric) => metric.name === name);
  return Object.fromEntries(
    (found?.values ?? []).map(({ labels, value }) => [
      Object.entries(labels)
        .map(([label, of]) => `${label}=${String(of)}`)
        .toSorted()
        .join(),
      value,
    ]),
  );
}
