import { createHash } from 'node:crypto';
import type { ConsoleFiles } from './console_files.ts';

/** The document of every page of the console, and the headers that restrict it. */
export interface PageShell {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/**
 * Builds the document of a page, which needs `modules`. It is the same for every user, so it has an ETag and no nonce.
 */
export function createPageShell(
  { base, imports, preloads }: ConsoleFiles,
  modules: readonly string[],
): PageShell {
  const importMap = JSON.stringify({ imports });
  const preload = (path: string) => `<link rel="modulepreload" href="${base}/${path}">`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>exportd</title>
<link rel="icon" href="${base}/icon.svg" type="image/svg+xml">
<script src="${base}/theme_before_paint.ts"></script>
<link rel="stylesheet" href="${base}/console.css">
<script type="importmap">${importMap}</script>
${[...preloads, ...modules].map(preload).join('\n')}
<script type="module" src="${base}/main.ts"></script>
</head>
<body>
<div id="root"></div>
<noscript>The console needs JavaScript. The <a href="/api/docs">HTTP API</a> and <code>npx exportd --help</code> do the same.</noscript>
</body>
</html>
`;
  return {
    html,
    contentSecurityPolicy: [
      "default-src 'none'",
      `script-src 'self' 'sha256-${createHash('sha256').update(importMap).digest('base64')}'`,
      "style-src 'self'",
      "img-src 'self'",
      "connect-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
  };
}
