import './components/shared.ts';
import { render } from 'preact';
import { App, followProject } from './app.ts';
import { startClock } from './components/moment.ts';
import { html } from './html.ts';
import { listenToKeys } from './keyboard.ts';
import { followLinks } from './router/location.ts';

followLinks();
listenToKeys();
startClock();
followProject();
const root = document.getElementById('root');
if (root) render(html`<${App} />`, root);
