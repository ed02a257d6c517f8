import { EmptyState } from '../../components/empty_state.ts';
import { Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';

/** The page Interval. */
export default function IntervalPage(): View {
  return html`<${Page} title="Interval"><${EmptyState} title="Not built yet" /><//>`;
}
