import type { Insight } from '../insight.ts';
import { dialectInsights } from './dialect.ts';
import { funnelInsights } from './funnels.ts';
import { listInsights } from './lists.ts';
import { trendsInsights } from './trends.ts';

/** The measured insights, which `src/queries/README.md` lists. */
export const insights: readonly Insight[] = [
  ...dialectInsights,
  ...trendsInsights,
  ...funnelInsights,
  ...listInsights,
];
