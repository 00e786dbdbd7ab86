/** Entry point of the explorer as a stand-alone page. */

import { Explorer } from "./explore";

void new Explorer(document.body).start();
