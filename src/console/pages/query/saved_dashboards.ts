import type { DashboardResponse } from '../../../http/dashboards/schema.ts';
import { apiPath, type ListOf } from '../../api/client.ts';
import { useResource } from '../../api/resource.ts';
import { may } from '../../api/session.ts';
import { html, type View } from '../../html.ts';

const shownDashboards = 20;

/** Links to the dashboards that the user of the key may see. */
export function SavedDashboards(): View {
  const mayRead = may('dashboard:read');
  const { data } = useResource<ListOf<DashboardResponse>>(mayRead ? 'dashboards/' : null, {
    query: { limit: shownDashboards },
  });
  if (!mayRead || !data) return null;
  return html`<section class="saved-dashboards">
    <h2>Dashboards</h2>
    ${
      data.results.length === 0
        ? html`<p class="muted">
            No dashboard yet. Create one with <code>npx exportd dashboard create</code>.
          </p>`
        : html`<ul>
            ${data.results.map(
              ({ id, name, description }) =>
                html`<li key=${id}>
                  <a href=${apiPath(`dashboards/${id}/`)} target="_blank" rel="noopener">${name}</a>
                  ${description && html`<p class="muted">${description}</p>`}
                </li>`,
            )}
          </ul>`
    }
  </section>`;
}
