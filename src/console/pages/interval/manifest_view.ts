import type { IntervalDetailResponse } from '../../../http/console/schema.ts';
import { shellWord } from '../../api/command_lines.ts';
import { CopyLine } from '../../components/copy_line.ts';
import { Section } from '../../components/page.ts';
import { html, type View } from '../../html.ts';

/** The current manifest: its key, how to read it from the bucket, and what it says. */
export function ManifestView({
  manifest: { bucket, endpoint, key, body },
}: {
  readonly manifest: NonNullable<IntervalDetailResponse['manifest']>;
}): View {
  const url = `s3://${bucket}/${key}`;
  const server = endpoint === null ? '' : `--endpoint-url ${shellWord(endpoint)} `;
  return html`<${Section} title="Manifest">
    <div class="card manifest">
      <${CopyLine} label="manifest URL" text=${url} />
      <${CopyLine}
        label="command that prints the manifest"
        text=${`aws ${server}s3 cp ${shellWord(url)} -`}
      />
      <details>
        <summary>As the journal recorded it</summary>
        <pre class="code" tabindex="0">${JSON.stringify(body, null, 2)}</pre>
      </details>
    </div>
  <//>`;
}
