import type { Insight } from '../insight.ts';
import { dialectInsights } from './dialect.ts';
import { funnelInsights } from './funnels.ts';
import { listInsights } from './lists.ts';
import { trendsInsights } from './trends.ts';

/** The insights that are measured; `src/queries/README.md` lists them. */
export const insights: readonly Insight[] = [
  ...dialectInsights,
  ...trendsInsights,
  ...funnelInsights,
  ...listInsights,
];
