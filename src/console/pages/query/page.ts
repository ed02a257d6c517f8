import { EmptyState } from '../../components/empty_state.ts';
import { Page } from '../../components/page.ts';
import { html, type View } from '../../html.ts';

/** The page Query. */
export default function QueryPage(): View {
  return html`<${Page} title="Query"><${EmptyState} title="Not built yet" /><//>`;
}
